// Tries to take a file from outside of the project into the result.

import { readFileSync } from 'node:fs'

export const stolen = readFileSync('/etc/passwd', 'utf8')
