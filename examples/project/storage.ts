// Where the pages of the site lie. A file beside this one is read like any other file of the project.

import { readFileSync } from 'node:fs'

import { resource } from './declare'

const Bucket = resource('Bucket', ['address', 'name'])

const { region } = JSON.parse(readFileSync(new URL('settings.json', import.meta.url), 'utf8'))

export const pages = new Bucket({ region, versioned: true })
export const logs = new Bucket({ region, expireAfterDays: 30 })
