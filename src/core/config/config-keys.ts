// Building blocks for the schema of the configuration. Each schema carries the type of its values, so that config-schema.ts
// declares each key once. Each `description` completes the sentence "must be ...".
import { durationPattern, namePattern, percentPattern, percentRangePattern, sizePattern } from '../names.js';

/** A JSON Schema (draft 7), as far as the configuration uses it, with the bounds of durations and sizes. */
export interface Schema extends Readonly<Partial<Record<NumberBound, number>>> {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly pattern?: string;
  readonly enum?: readonly string[];
  /** Values of `enum` that are accepted for compatibility, and are not listed in messages. */
  readonly retired?: readonly string[];
  readonly uniqueItems?: boolean;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly propertyNames?: Schema;
  readonly additionalProperties?: false | Schema;
  /** Least and greatest duration in milliseconds, or size in bytes. */
  readonly bounds?: { readonly of: 'duration' | 'size'; readonly min: number; readonly max: number };
}

type NumberBound =
  | 'minimum'
  | 'maximum'
  | `${'min' | 'max'}Properties`
  | `${'min' | 'max'}${'Items' | 'Length'}`;

/** The schema of values of type T. The member `value` is never set: it only carries the type. */
export interface Key<T> extends Schema {
  readonly value?: T;
}

export type Keys = Readonly<Record<string, Key<unknown>>>;

/** The type of the values that a schema accepts. */
export type ValueOf<K> = K extends Key<infer T> ? T : never;

export type GroupOf<K extends Keys, Required extends keyof K = never> = {
  readonly [Name in Required]: ValueOf<K[Name]>;
} & { readonly [Name in Exclude<keyof K, Required>]?: ValueOf<K[Name]> };

export const name: Key<string> = {
  type: 'string',
  pattern: namePattern,
  description: 'a name: up to 64 of a-z 0-9 . _ - that begins with a letter or digit',
};
export const size: Key<string> = {
  type: 'string',
  pattern: sizePattern,
  description: 'a size: a whole number with B, kB, MB or GB, as 256MB',
};
/** A percentage; config-bounds limits it to 100%. */
export const percentage: Key<string> = {
  type: 'string',
  pattern: percentPattern,
  description: 'a percentage from 0% to 100%, as 50%',
};
export const percentRange: Key<string> = {
  type: 'string',
  pattern: percentRangePattern,
  description: 'two percentages with two dots between, as 50%..200%',
};
export const absolutePath: Key<string> = {
  type: 'string',
  pattern: '^/[^\\u0000-\\u001f]*$',
  maxLength: 4000,
  description: 'an absolute path, as /var/lib/writ',
};
export const glob: Key<string> = {
  type: 'string',
  minLength: 1,
  maxLength: 1000,
  description: 'a glob, as views/**',
};
/** `noProxy` has the entries of NO_PROXY; proxy-rules parses them. */
const proxyKeys = {
  url: textUpTo(2000, 'a URL, as http://proxy.example.net:3128'),
  credentialsFile: absolutePath,
  ca: absolutePath,
  noProxy: list(textUpTo(300, 'a host, a suffix, an address or a network'), { min: 0, max: 1000 }),
};
export const proxy: Key<string | GroupOf<typeof proxyKeys, 'url'>> = {
  ...group(proxyKeys, ['url']),
  type: ['string', 'object'],
  maxLength: 2000,
  description:
    'a URL, as http://proxy.example.net:3128, or none, or a group with url, credentialsFile, ca and noProxy',
};
export const boolean: Key<boolean> = { type: 'boolean', description: 'true or false' };
export const commandLine: Key<readonly [string, ...string[]]> = {
  type: 'array',
  minItems: 1,
  maxItems: 256,
  items: { type: 'string', maxLength: 10_000, description: 'a text (put it in quotes)' },
  description: 'a list: a program and its arguments, as [kresd, -n]',
};

/**
 * @param min the shortest duration that is accepted, in milliseconds, as `max` for the longest
 * @returns the schema of a duration as text
 */
export function durationFrom(min: number, max: number): Key<string> {
  const description = 'a duration: a whole number with ms, s, m, h or d, as 5m';
  return { type: 'string', pattern: durationPattern, description, bounds: { of: 'duration', min, max } };
}

/** As durationFrom, or 0 to switch the feature off. */
export function durationOrZero(min: number, max: number): Key<string | 0> {
  const { description, ...duration } = durationFrom(min, max);
  const type = ['string', 'integer'];
  return { ...duration, type, minimum: 0, maximum: 0, description: `${description}; or 0, for none` };
}

/**
 * @param min the least size that is accepted, in bytes, as `max` for the greatest
 * @returns the schema of a size as text
 */
export function sizeFrom(min: number, max: number): Key<string> {
  return { ...size, bounds: { of: 'size', min, max } };
}

/** @returns the schema of a whole number; both bounds are accepted */
export function whole(minimum: number, maximum: number): Key<number> {
  return { type: 'integer', minimum, maximum, description: `a whole number from ${minimum} to ${maximum}` };
}

/**
 * @param maxLength characters, itself accepted; the empty text is accepted too
 * @param description completes the sentence "must be ..." of an error
 * @returns the schema of a text. Throws nothing. Example: textUpTo(3, 'a name') is { type: 'string', maxLength: 3, description:
 *   'a name' }
 */
export function textUpTo(maxLength: number, description: string): Key<string> {
  return { type: 'string', maxLength, description };
}

/**
 * @returns the schema of a text that matches the pattern
 * @param description completes the sentence "must be ..." of an error
 */
export function regex(pattern: string, description: string): Key<string> {
  return { type: 'string', pattern, description };
}

/**
 * @returns the schema of a text that is exactly one of the values
 * @param description completes the sentence "must be ..." of an error
 */
export function choice<const T extends string>(values: readonly T[], description: string): Key<T> {
  return { type: 'string', enum: values, description };
}

/** Name or number of a user or group of the host. */
export function account(description: string): Key<string | number> {
  const pattern = '^[A-Za-z_][A-Za-z0-9_.-]{0,31}$';
  return { type: ['string', 'integer'], pattern, minimum: 0, maximum: 4_294_967_294, description };
}

/** @returns the schema of a list; `bounds` are the least and the greatest number of entries */
export function list<T>(
  items: Key<T>,
  bounds: { readonly min: number; readonly max: number },
): Key<readonly T[]> {
  const { min, max } = bounds;
  const description = `a list of ${min} to ${max} entries`;
  return { type: 'array', minItems: min, maxItems: max, items, description };
}

/** @returns the schema of a group that accepts these keys and no others; none is required by default */
export function group<K extends Keys, Required extends keyof K & string = never>(
  properties: K,
  required: readonly Required[] = [],
): Key<GroupOf<K, Required>> {
  const description = 'a group of keys, as {key: value}';
  return { type: 'object', additionalProperties: false, required, properties, description };
}

/** @returns a group of optional keys, of which at least one must be set */
export function nonEmptyGroup<K extends Keys>(properties: K, example: string): Key<GroupOf<K>> {
  return { ...group(properties), minProperties: 1, description: `a group of keys, as ${example}` };
}

const processKeys = {
  unit: {
    ...regex(
      '^[A-Za-z0-9:_.@{}\\\\-]+\\.[a-z]+$',
      'a unit with its type, as nginx.service or app@{worker}.service',
    ),
    maxLength: 200,
  },
  pidFile: {
    ...regex('^/[^\\n\\u0000]*[^/\\n\\u0000]$', 'an absolute path of a pid file, as /run/named/named.pid'),
    maxLength: 4096,
  },
  listens: {
    ...regex(
      '^(/[^\\u0000-\\u001f]+|[^\\s/]+:([0-9]{1,5}|\\{worker\\}))$',
      'HOST:PORT or the path of a unix socket, as 127.0.0.1:9090 or /run/app.sock',
    ),
    maxLength: 300,
  },
  program: {
    ...regex(
      '^(/[^\\u0000-\\u001f]+|[^/\\u0000-\\u001f]+)$',
      'a name or an absolute path of a program, as named',
    ),
    maxLength: 4000,
  },
};
/** The process identity of a worker. */
export const processKey: Key<'none' | GroupOf<typeof processKeys>> = {
  ...group(processKeys),
  type: ['string', 'object'],
  pattern: '^none$',
  minProperties: 1,
  description: 'none, or a group of keys as {unit: nginx.service}',
};

export type ProcessFile = NonNullable<(typeof processKey)['value']>;

/** Keys of `probe` for the times of its attempts. */
export const probeTimeKeys = {
  deadline: durationFrom(1, 3_600_000),
  gap: durationFrom(100, 60_000),
  every: durationFrom(30_000, 86_400_000),
};
