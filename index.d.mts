// The types for `import`: the very declarations of index.d.ts, as index.mjs hands on the very objects of index.js.
export * from './index.js'
