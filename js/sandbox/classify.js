'use strict'

// Errors in the words of a person, by the one table in Rust. Whatever is thrown can be given; what of it cannot be read
// is left out. Fails only for arguments that are wrong. Source: contract/sandbox.md, "Errors".

const binding = require('../binding')
const { optional, requireOneOf, requireString } = require('../arguments')
const { DiscoveryError } = require('../discovery-error')
const { fromJson, toJson } = require('../json')
const { describeError } = require('../../runtime/child-errors')

/** @typedef {import('../../index.js').DiscoveryErrorType} DiscoveryErrorType */

const TYPES = /** @type {const} */ (['import', 'resolution', 'circular', 'permission'])

/**
 * @param {string} file empty where it is about the whole run
 * @param {unknown} error
 * @param {DiscoveryErrorType} [fallbackType]
 * @returns {InstanceType<typeof DiscoveryError>}
 */
function classifyChildError(file, error, fallbackType) {
  const about = requireString(file, 'file')
  const fallback = optional(fallbackType, 'fallbackType', (type, name) => requireOneOf(type, name, TYPES)) ?? 'import'
  const classified = fromJson(binding.classifyError(about, toJson(describeError(error)), toJson(fallback)))
  return new DiscoveryError(about, classified.message, classified.type)
}

/**
 * The sentence of a denial that was found out here, before a child could meet it.
 * @param {'FileSystemRead' | 'Addons'} permission
 * @param {string} resource
 * @param {string} place a file, and where in it
 * @returns {string}
 */
function deniedMessage(permission, resource, place) {
  const description = { isError: true, code: 'ERR_ACCESS_DENIED', permission, resource }
  return fromJson(binding.classifyError(place, toJson(description), toJson('permission'))).message
}

module.exports = { classifyChildError, deniedMessage }
