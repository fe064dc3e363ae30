// Tries to change the project itself, which it may read: the next build would run what it wrote.

import { appendFileSync } from 'node:fs'

appendFileSync(new URL('harmless.ts', import.meta.url), '')
