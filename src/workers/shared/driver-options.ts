// The options of drivers, each written once: as the JSON Schema of a key under `reset:`, of which the type of its value
// follows. Owns the common forms; what an option means is its driver's.
import type { Driver, DriverContext, DriverKind } from '../contract/driver.js';

declare const value: unique symbol;

/** A JSON Schema, and the type of what it accepts. */
export type Property<T> = object & { readonly [value]?: T };

type Properties = Readonly<Record<string, object>>;
type ValueOf<P> = P extends Property<infer T> ? T : never;

/** What the schemas accept, with these members for certain. */
export type OptionsOf<P extends Properties, Required extends keyof P> = {
  readonly [K in Required]: ValueOf<P[K]>;
} & { readonly [K in Exclude<keyof P, Required>]?: ValueOf<P[K]> };

interface TextBounds {
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
}

/** @param schema accepts values of this type alone */
export function property<T>(schema: object): Property<T> {
  return schema;
}

export function text(description: string, bounds: TextBounds = {}): Property<string> {
  return property({ type: 'string', ...bounds, description });
}

export function absoluteFile(description: string, maxLength = 4096): Property<string> {
  return text(description, { pattern: '^/[^\\n\\u0000]*[^/\\n\\u0000]$', maxLength });
}

export const authorizationFile = absoluteFile(
  'the absolute path of a file with the value of the Authorization header',
);

/** @returns one of the texts, with all of them as its description, as `a, b or c` */
export function oneOf<const T extends string>(...texts: readonly T[]): Property<T> {
  const description = texts.join(', ').replace(/, ([^,]*)$/, ' or $1');
  return property({ type: 'string', enum: texts, description });
}

/** Signals that end a process by convention are no way to hand it a policy. */
export const harmlessSignal = oneOf('HUP', 'USR1', 'USR2', 'WINCH');

/** @param yes what `true` says */
export function yesOrNo(yes: string): Property<boolean> {
  return property({ type: 'boolean', description: `true (${yes}) or false` });
}

/** A driver of which the options have the types of their schemas. */
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
  // Only what the schemas accepted comes here.
  return { required: [], ...kind } as unknown as DriverKind;
}
