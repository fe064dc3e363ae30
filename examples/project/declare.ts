// The declaration library of this example, in as little code as the entity protocol takes. A real project imports a
// package instead. All marks are `Symbol.for`, so that copies of a library agree. Nothing is checked here: what is
// declared wrongly is refused when it is collected, by file and name.

type Props = Record<string, unknown>

function hidden(target: object, fields: Record<PropertyKey, unknown>): void {
  for (const key of Reflect.ownKeys(fields)) {
    Object.defineProperty(target, key, { value: fields[key as string], configurable: true, writable: true })
  }
}

const mark = (name: string) => Symbol.for(`chant.${name}`)

/** A value that is known only once the thing exists: `assets.address`, for instance. */
class AttributeReference {
  readonly parent: WeakRef<object>
  #name: string | undefined

  constructor(
    parent: object,
    readonly attribute: string,
  ) {
    this.parent = new WeakRef(parent)
    hidden(this, { [mark('intrinsic')]: true })
  }

  getLogicalName(): string | undefined {
    return this.#name
  }

  _setLogicalName(name: string): void {
    this.#name = name
  }

  toJSON(): unknown {
    return { __attrRef: { entity: this.#name, attribute: this.attribute } }
  }
}

/** Makes a kind of resource with the attributes that others may refer to. */
export function resource<Attribute extends string>(entityType: string, attributes: readonly Attribute[]) {
  return class {
    declare readonly props: Props

    constructor(props: Props) {
      hidden(this, {
        [mark('declarable')]: true,
        lexicon: 'example',
        entityType,
        kind: 'resource',
        props,
        attributes: {},
      })
      for (const attribute of attributes) Object.assign(this, { [attribute]: new AttributeReference(this, attribute) })
    }
  } as new (props: Props) => { readonly props: Props } & Record<Attribute, AttributeReference>
}

/** Several resources under one name, with props that all of them share. */
export function composite(name: string, members: Record<string, object>, shared: Props = {}): object {
  const made = { members }
  hidden(made, {
    [mark('composite')]: true,
    [mark('composite.shared')]: shared,
    _definition: { compositeName: name },
  })
  return made
}

/** Something that the project tells the world once it is deployed. */
export function output(outputName: string, source: AttributeReference): object {
  const made = {
    outputName,
    sourceLexicon: 'example',
    sourceEntity: undefined as string | undefined,
    sourceAttribute: source.attribute,
    _sourceParent: source.parent,
    _intrinsic: null,
    _literalValue: undefined,
    _setSourceEntity(name: string): void {
      made.sourceEntity = name
    },
    getOutputValue: () => ({ 'Fn::GetAtt': [made.sourceEntity, made.sourceAttribute] }),
    toJSON: () => ({ 'chant::output': outputName }),
  }
  hidden(made, { [mark('lexiconOutput')]: true, [mark('intrinsic')]: true })
  return made
}
