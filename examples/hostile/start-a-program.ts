// Tries to start a program, which would be held by none of what holds Node.

import { execFileSync } from 'node:child_process'

export const user = execFileSync('id', { encoding: 'utf8' })
