// A well-behaved neighbour of the others: what they try does not harm it.

const entity = {}
const fields = { lexicon: 'example', entityType: 'Neighbour', kind: 'resource', props: { unharmed: true } }
Object.defineProperty(entity, Symbol.for('chant.declarable'), { value: true })
for (const [name, value] of Object.entries(fields)) Object.defineProperty(entity, name, { value })

export const harmless = entity
