// Tries to leave a file behind, outside of the project.

import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

writeFileSync(join(tmpdir(), 'sallyport-example-was-here'), 'and could have been anything')
