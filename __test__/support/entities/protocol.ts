// Objects that speak the entity protocol of contract/sandbox.md, made by the shortest code that does: what a project
// would get from its own declaration library. Plain TypeScript without a dependency, so that project files can import a
// copy of it inside the sandbox. Nothing here checks anything: a wrong use gives a wrong object, which tests want too.

const mark = (name: string): symbol => Symbol.for(`chant.${name}`)

export const DECLARABLE = mark('declarable')
export const INTRINSIC = mark('intrinsic')
export const COMPOSITE = mark('composite')
export const COMPOSITE_SHARED = mark('composite.shared')
export const LEXICON_OUTPUT = mark('lexiconOutput')
export const CHILD_PROJECT = mark('childProject')
export const PROVENANCE = mark('provenance')
export const LOGICAL_NAME = mark('logicalName')

export type Entity = Record<PropertyKey, any>
export type Props = Record<string, unknown>

function hide(target: object, key: PropertyKey, value: unknown): void {
  Object.defineProperty(target, key, { value, writable: true, enumerable: false, configurable: true })
}

export class AttributeReference {
  readonly parent: WeakRef<object>
  private logicalName: string | undefined

  constructor(
    parent: object,
    readonly attribute: string,
  ) {
    this.parent = new WeakRef(parent)
    hide(this, 'logicalName', undefined)
    hide(this, INTRINSIC, true)
  }

  getLogicalName(): string | undefined {
    return this.logicalName
  }

  _setLogicalName(name: string): void {
    this.logicalName = name
  }

  toJSON(): unknown {
    if (this.logicalName === undefined) throw new Error(`The attribute "${this.attribute}" has no name yet`)
    return { __attrRef: { entity: this.logicalName, attribute: this.attribute } }
  }
}

function declarable(lexicon: string, entityType: string, kind: string, props: Props | undefined): Entity {
  const entity: Entity = {}
  hide(entity, DECLARABLE, true)
  hide(entity, 'lexicon', lexicon)
  hide(entity, 'entityType', entityType)
  hide(entity, 'kind', kind)
  if (props !== undefined) hide(entity, 'props', props)
  return entity
}

/** A maker of resources of one type; each has a reference per attribute as an enumerable field. */
export function createResource(
  entityType: string,
  lexicon = 'cloud',
  attributes: string[] = [],
): (props?: Props) => Entity {
  return (props) => {
    const entity = declarable(lexicon, entityType, 'resource', props)
    hide(entity, 'attributes', Object.fromEntries(attributes.map((attribute) => [attribute, attribute])))
    for (const attribute of attributes) entity[attribute] = new AttributeReference(entity, attribute)
    return entity
  }
}

/** A declarable that is written inside another one's props. */
export function createProperty(entityType: string, lexicon = 'cloud'): (props?: Props) => Entity {
  return (props) => declarable(lexicon, entityType, 'property', props)
}

/** A maker of composites: `build` gives the members, by name. */
export function createComposite<Arguments extends unknown[]>(
  compositeName: string,
  build: (...values: Arguments) => Record<string, unknown>,
): (...values: Arguments) => Entity {
  return (...values) => {
    const composite: Entity = {}
    hide(composite, COMPOSITE, true)
    hide(composite, '_definition', { compositeName })
    composite.members = build(...values)
    return composite
  }
}

/** Merges props into every member of a composite. */
export function share(composite: Entity, props: Props): Entity {
  hide(composite, COMPOSITE_SHARED, props)
  return composite
}

/** An intrinsic whose parts are joined; with `yaml` it has a form of its own for YAML too. */
export class Join {
  toYAML?: () => unknown

  constructor(
    readonly separator: string,
    readonly parts: unknown[],
    yaml = false,
  ) {
    hide(this, INTRINSIC, true)
    if (yaml) hide(this, 'toYAML', () => ({ tag: '!Join', value: [this.separator, this.parts] }))
  }

  toJSON(): unknown {
    return { 'Fn::Join': [this.separator, this.parts] }
  }
}

export class LexiconOutput {
  sourceLexicon: string
  sourceEntity: string | undefined
  sourceAttribute: string | undefined
  _sourceParent: WeakRef<object> | null = null
  _intrinsic: Entity | undefined
  _literalValue: string | number | boolean | undefined

  constructor(
    source: unknown,
    readonly outputName: string,
  ) {
    hide(this, LEXICON_OUTPUT, true)
    hide(this, INTRINSIC, true)
    this.sourceLexicon = ''
    if (source instanceof AttributeReference) {
      this._sourceParent = source.parent
      this.sourceAttribute = source.attribute
      this.sourceLexicon = (source.parent.deref() as Entity).lexicon
    } else if (typeof source === 'object' && source !== null) {
      this._intrinsic = source as Entity
    } else {
      this._literalValue = source as string
    }
  }

  _setSourceEntity(name: string): void {
    this.sourceEntity = name
  }

  getOutputValue(): unknown {
    if (this._literalValue !== undefined) return this._literalValue
    if (this._intrinsic !== undefined) return this._intrinsic.toJSON()
    return { 'Fn::GetAtt': [this.sourceEntity, this.sourceAttribute] }
  }

  toJSON(): unknown {
    return { 'chant::output': this.outputName }
  }
}

/** A reference to another project, which must not cross. */
export function createChildProject(): Entity {
  const entity = declarable('cloud', 'Project', 'resource', {})
  hide(entity, CHILD_PROJECT, true)
  return entity
}
