// Defines the options of drivers: each is the JSON Schema of a key under `reset:`, from which the type of its value is derived. Owns the
// common forms; each driver defines the meaning of its options.
import type { Driver, DriverContext, DriverKind } from '../contract/driver.js';

declare const value: unique symbol;

/** A JSON Schema, and the type of what it accepts. */
export type Property<T> = object & { readonly [value]?: T };

type Properties = Readonly<Record<string, object>>;
type ValueOf<P> = P extends Property<infer T> ? T : never;

/** The values that the schemas accept; `Required` members are always present. */
export type OptionsOf<P extends Properties, Required extends keyof P> = {
  readonly [K in Required]: ValueOf<P[K]>;
} & { readonly [K in Exclude<keyof P, Required>]?: ValueOf<P[K]> };

interface TextBounds {
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
}

/**
 * @param schema that accepts only values of this type; this is not checked
 * @returns the same object, with the type of its values for the compiler only. Throws nothing.
 */
export function property<T>(schema: object): Property<T> {
  return schema;
}

/**
 * @param description completes the sentence "must be ..." of an error
 * @returns the schema of a text; without bounds every text is accepted
 */
export function text(description: string, bounds: TextBounds = {}): Property<string> {
  return property({ type: 'string', ...bounds, description });
}

/**
 * @param description completes the sentence "must be ..." of an error
 * @param maxLength characters
 * @returns the schema of an absolute path that does not end with a slash
 */
export function absoluteFile(description: string, maxLength = 4096): Property<string> {
  return text(description, { pattern: '^/[^\\n\\u0000]*[^/\\n\\u0000]$', maxLength });
}

export const authorizationFile = absoluteFile(
  'the absolute path of a file with the value of the Authorization header',
);

/** @returns a schema that accepts one of the texts; its description is `a, b or c` */
export function oneOf<const T extends string>(...texts: readonly T[]): Property<T> {
  const description = texts.join(', ').replace(/, ([^,]*)$/, ' or $1');
  return property({ type: 'string', enum: texts, description });
}

/** Signals that may notify. Signals that end a process by convention are excluded. */
export const harmlessSignal = oneOf('HUP', 'USR1', 'USR2', 'WINCH');

/**
 * @param yes meaning of `true`, for the description
 * @returns the schema of a boolean. Throws nothing. Example: yesOrNo('restart') has the description `true (restart) or false`
 */
export function yesOrNo(yes: string): Property<boolean> {
  return property({ type: 'boolean', description: `true (${yes}) or false` });
}

/** Declares a kind of driver. Its options get the types of their schemas. */
export function driverKind<
  P extends Properties,
  Name extends keyof P & string,
  Required extends keyof P & string = never,
>(kind: {
  readonly name: Name;
  readonly properties: P;
  readonly required?: readonly Required[];
  readonly knowsProcess?: boolean;
  create(options: OptionsOf<P, Name | Required>, context: DriverContext): Driver;
}): DriverKind {
  // The options are valid, because the schemas are checked before.
  return { required: [], ...kind } as unknown as DriverKind;
}
