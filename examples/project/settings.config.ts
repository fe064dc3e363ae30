// A configuration for `evaluateConfigSandboxed`: whatever it computes, only data leaves the sandbox.

const regions = ['eu-west', 'us-east']

export default {
  stacks: regions.map((region) => ({ name: `site-${region}`, region, replicas: region.startsWith('eu') ? 3 : 1 })),
}
