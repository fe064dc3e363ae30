// The site itself: it refers to what `storage.ts` declares, and both are the same objects in every file.

import { composite, output, resource } from './declare'
import { logs, pages } from './storage'

const Distribution = resource('Distribution', ['domain'])
const Certificate = resource('Certificate', ['fingerprint'])
const Role = resource('Role', ['id'])

export const certificate = new Certificate({ domains: ['example.org', 'www.example.org'] })
export const distribution = new Distribution({
  origin: pages.address,
  certificate: certificate.fingerprint,
  logsTo: logs.name,
})

/** Two roles under one name: `accessReader` and `accessWriter`. */
export const access = composite(
  'Access',
  { reader: new Role({ allow: ['read'], on: pages.name }), writer: new Role({ allow: ['write'], on: pages.name }) },
  { tags: ['site'] },
)

export const address = output('SiteAddress', distribution.domain)
