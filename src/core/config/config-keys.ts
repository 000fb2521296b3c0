// What the schema of the configuration is made of: a schema with the type of what it accepts, so that each key of the
// file is written down once (config-schema.ts). Each `description` completes the sentence "must be ...".
import { durationPattern, namePattern, percentPattern, percentRangePattern, sizePattern } from '../names.js';

/** A JSON Schema (draft 7) as far as this file uses it, and the bounds that a text hides from it. */
export interface Schema extends Readonly<Partial<Record<NumberBound, number>>> {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly pattern?: string;
  readonly enum?: readonly string[];
  /** Words of `enum` that are taken still, and offered to nobody. */
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

/** The schema of a value of this type; `value` is never there, and only carries the type. */
export interface Key<T> extends Schema {
  readonly value?: T;
}

export type Keys = Readonly<Record<string, Key<unknown>>>;

/** What a schema accepts. */
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
/** Of something that can't lose more than all of it. */
export const share: Key<string> = {
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
/** A list of hosts as of NO_PROXY; proxy-rules reads an entry. */
const proxyKeys = {
  url: text(2000, 'a URL, as http://proxy.example.net:3128'),
  credentialsFile: absolutePath,
  ca: absolutePath,
  noProxy: list(text(300, 'a host, a suffix, an address or a network'), { min: 0, max: 1000 }),
};
export const proxy: Key<string | GroupOf<typeof proxyKeys, 'url'>> = {
  ...object(proxyKeys, ['url']),
  type: ['string', 'object'],
  maxLength: 2000,
  description:
    'a URL, as http://proxy.example.net:3128, or none, or a group with url, credentialsFile, ca and noProxy',
};
export const boolean: Key<boolean> = { type: 'boolean', description: 'true or false' };
export const command: Key<readonly [string, ...string[]]> = {
  type: 'array',
  minItems: 1,
  maxItems: 256,
  items: { type: 'string', maxLength: 10_000, description: 'a text (put it in quotes)' },
  description: 'a list: a program and its arguments, as [kresd, -n]',
};

export function durationFrom(min: number, max: number): Key<string> {
  const description = 'a duration: a whole number with ms, s, m, h or d, as 5m';
  return { type: 'string', pattern: durationPattern, description, bounds: { of: 'duration', min, max } };
}

/** 0 turns off what has the duration. */
export function durationOrZero(min: number, max: number): Key<string | 0> {
  const { description, ...duration } = durationFrom(min, max);
  const type = ['string', 'integer'];
  return { ...duration, type, minimum: 0, maximum: 0, description: `${description}; or 0, for none` };
}

export function sizeFrom(min: number, max: number): Key<string> {
  return { ...size, bounds: { of: 'size', min, max } };
}

export function whole(minimum: number, maximum: number): Key<number> {
  return { type: 'integer', minimum, maximum, description: `a whole number from ${minimum} to ${maximum}` };
}

export function text(maxLength: number, description: string): Key<string> {
  return { type: 'string', maxLength, description };
}

export function matching(pattern: string, description: string): Key<string> {
  return { type: 'string', pattern, description };
}

export function oneOf<const T extends string>(values: readonly T[], description: string): Key<T> {
  return { type: 'string', enum: values, description };
}

/** Of a user or group of the host. */
export function account(description: string): Key<string | number> {
  const pattern = '^[A-Za-z_][A-Za-z0-9_.-]{0,31}$';
  return { type: ['string', 'integer'], pattern, minimum: 0, maximum: 4_294_967_294, description };
}

export function list<T>(
  items: Key<T>,
  bounds: { readonly min: number; readonly max: number },
): Key<readonly T[]> {
  const { min, max } = bounds;
  const description = `a list of ${min} to ${max} entries`;
  return { type: 'array', minItems: min, maxItems: max, items, description };
}

export function object<K extends Keys, Required extends keyof K & string = never>(
  properties: K,
  required: readonly Required[] = [],
): Key<GroupOf<K, Required>> {
  const description = 'a group of keys, as {key: value}';
  return { type: 'object', additionalProperties: false, required, properties, description };
}

/** @returns an object in which none is required and at least one must be given */
export function someOf<K extends Keys>(properties: K, example: string): Key<GroupOf<K>> {
  return { ...object(properties), minProperties: 1, description: `a group of keys, as ${example}` };
}

const processKeys = {
  unit: {
    ...matching(
      '^[A-Za-z0-9:_.@{}\\\\-]+\\.[a-z]+$',
      'a unit with its type, as nginx.service or app@{worker}.service',
    ),
    maxLength: 200,
  },
  pidFile: {
    ...matching('^/[^\\n\\u0000]*[^/\\n\\u0000]$', 'an absolute path of a pid file, as /run/named/named.pid'),
    maxLength: 4096,
  },
  listens: {
    ...matching(
      '^(/[^\\u0000-\\u001f]+|[^\\s/]+:([0-9]{1,5}|\\{worker\\}))$',
      'HOST:PORT or the path of a unix socket, as 127.0.0.1:9090 or /run/app.sock',
    ),
    maxLength: 300,
  },
  program: {
    ...matching(
      '^(/[^\\u0000-\\u001f]+|[^/\\u0000-\\u001f]+)$',
      'a name or an absolute path of a program, as named',
    ),
    maxLength: 4000,
  },
};
/** Which process a worker is. */
export const processKey: Key<'none' | GroupOf<typeof processKeys>> = {
  ...object(processKeys),
  type: ['string', 'object'],
  pattern: '^none$',
  minProperties: 1,
  description: 'none, or a group of keys as {unit: nginx.service}',
};

export type ProcessFile = NonNullable<(typeof processKey)['value']>;

/** Keys of `probe` that say when it is asked, and for how long. */
export const probeTimeKeys = {
  deadline: durationFrom(1, 3_600_000),
  gap: durationFrom(100, 60_000),
  every: durationFrom(30_000, 86_400_000),
};
