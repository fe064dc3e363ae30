// How a Node of this version is held to its permissions (contract/sandbox.md, "Launch"): the switch by version.

const [major, minor] = process.versions.node.split('.').map(Number)
const isStable = major >= 24 || (major === 22 && minor >= 13) || (major === 23 && minor >= 5)

export const PERMISSION_FLAG = isStable ? '--permission' : '--experimental-permission'
