// The JSON Schema of the agent's configuration file: every key that exists, with its type and bounds. A key
// whose feature does not exist is not here, and so refused as unknown. What a schema cannot say is in
// config-rules. Each `description` completes the sentence "must be ...".
import { durationPattern, namePattern, sizePattern } from '../names.js';
import { listenPattern } from './config-reports.js';
import type { Schema } from './findings.js';
import { boxKeys, rejectSchema } from './hook-box.js';

/** What the schema needs to know of a kind of driver (workers/contract/driver.ts has the whole of it). */
export interface DriverSchema {
  readonly name: string;
  readonly properties: Readonly<Record<string, object>>;
  readonly required: readonly string[];
}

const name: Schema = {
  type: 'string',
  pattern: namePattern,
  description: 'a name: up to 64 of a-z 0-9 . _ - that begins with a letter or digit',
};
const duration: Schema = {
  type: 'string',
  pattern: durationPattern,
  description: 'a duration: a whole number with ms, s, m, h or d, as 5m',
};
const size: Schema = {
  type: 'string',
  pattern: sizePattern,
  description: 'a size: a whole number with B, kB, MB or GB, as 256MB',
};
const absolutePath: Schema = {
  type: 'string',
  pattern: '^/[^\\u0000-\\u001f]*$',
  maxLength: 4000,
  description: 'an absolute path, as /var/lib/writ',
};
const url: Schema = { type: 'string', maxLength: 2000, description: 'a URL, as https://policy.example.net/' };
const title: Schema = {
  type: 'string',
  pattern: '^[^\\u0000-\\u001f\\u007f]{1,80}$',
  description: 'one line of 1 to 80 characters',
};
const glob: Schema = { type: 'string', minLength: 1, maxLength: 1000, description: 'a glob, as views/**' };
const command: Schema = {
  type: 'array',
  minItems: 1,
  maxItems: 256,
  items: { type: 'string', maxLength: 10_000, description: 'a text (put it in quotes)' },
  description: 'a list: a program and its arguments, as [kresd, -n]',
};

function whole(minimum: number, maximum: number): Schema {
  return { type: 'integer', minimum, maximum, description: `a whole number from ${minimum} to ${maximum}` };
}

function list(items: Schema, bounds: { readonly min: number; readonly max: number }): Schema {
  const { min, max } = bounds;
  const description = `a list of ${min} to ${max} entries`;
  return { type: 'array', minItems: min, maxItems: max, items, description };
}

function object(properties: Record<string, Schema>, required: readonly string[] = []): Schema {
  const description = 'a group of keys, as {key: value}';
  return { type: 'object', additionalProperties: false, required, properties, description };
}

/** What every command that judges a policy may have. */
const judgeKeys: Record<string, Schema> = {
  run: command,
  timeout: duration,
  memory: size,
  reject: rejectSchema,
  retry: whole(0, 100),
  ...boxKeys,
};
/** Of commands that may also act on the host. */
const groupHookKeys: Record<string, Schema> = {
  ...judgeKeys,
  sandbox: { type: 'string', enum: ['off'], description: 'off, or left out' },
};

const check = object(
  {
    ...judgeKeys,
    name: title,
    parse: list(glob, { min: 1, max: 100 }),
    schema: {
      type: 'string',
      pattern: '^(/|bundle:[^/])[^\\u0000-\\u001f]*$',
      maxLength: 4000,
      description: 'an absolute path, or bundle:PATH for a file of the bundle',
    },
  },
  ['name'],
);

const bundle = object(
  {
    name,
    channel: name,
    checks: list(check, { min: 0, max: 100 }),
    mode: {
      type: 'string',
      // Never executable, never writable by others than the owner: a worker must not be able to change policy.
      pattern: '^0[46][04][04]$',
      description: 'a file mode in quotes without write or execute for others, as "0644" or "0640"',
    },
    group: {
      type: ['string', 'integer'],
      pattern: '^[A-Za-z_][A-Za-z0-9_.-]{0,31}$',
      minimum: 0,
      maximum: 4_294_967_294,
      description: 'the name or number of a group',
    },
  },
  ['name'],
);

const worker = object(
  {
    name,
    uses: list(name, { min: 1, max: 256 }),
    when: {
      type: ['array', 'object'],
      description: 'a list of globs, or a group {reset: GLOBS, restart: GLOBS}',
      minItems: 0,
      maxItems: 100,
      items: glob,
      additionalProperties: false,
      properties: { reset: list(glob, { min: 1, max: 100 }), restart: list(glob, { min: 1, max: 100 }) },
    },
    rolling: whole(1, 10_000),
    onDead: { type: 'string', enum: ['restart', 'report'], description: 'restart or report' },
    canary: object({ ...judgeKeys, start: command, probe: command }),
    load: object(groupHookKeys, ['run']),
    // Judged by driverSchema: which keys it may have depends on the driver that it names.
    reset: { type: 'object', description: 'a group of keys that names a driver, as {signal: HUP}' },
    confirm: { type: 'string', enum: ['required', 'optional'], description: 'required or optional' },
    settle: duration,
    minInterval: duration,
    probe: object({ ...groupHookKeys, deadline: duration }, ['run']),
  },
  ['name', 'uses'],
);

const mirror: Schema = {
  type: ['string', 'object'],
  description: 'a URL, or a group of keys as {url: URL, ca: FILE}',
  maxLength: 2000,
  additionalProperties: false,
  required: ['url'],
  properties: {
    url,
    ca: absolutePath,
    redirects: list(
      {
        type: 'string',
        pattern: '^([a-z0-9]([a-z0-9.-]{0,252})|\\[[0-9a-f:.]{2,45}\\])(:[1-9][0-9]{0,4})?$',
        description: 'a host in small letters, with a port if it is not 443, as cdn.example.net:8443',
      },
      { min: 0, max: 16 },
    ),
  },
};

const timeouts = object({
  connect: duration,
  idle: duration,
  metadata: duration,
  refresh: duration,
  archive: duration,
});

/** The whole file. */
export const configSchema: Schema = object(
  {
    repository: {
      ...mirror,
      type: ['string', 'array', 'object'],
      description: 'a URL, a group {url: URL, ca: FILE}, or a list of 1 to 16 of these',
      items: mirror,
      minItems: 1,
      maxItems: 16,
    },
    root: absolutePath,
    state: absolutePath,
    policy: absolutePath,
    run: absolutePath,
    socket: absolutePath,
    host: object({
      id: {
        type: 'string',
        pattern: '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$',
        description: 'a name of the host: up to 128 letters, digits and . _ : -',
      },
      labels: {
        type: 'object',
        maxProperties: 64,
        propertyNames: name,
        additionalProperties: {
          type: 'string',
          maxLength: 200,
          description: 'a text of at most 200 characters',
        },
        description: 'a group of labels, as {site: fra1}',
      },
    }),
    poll: object({
      every: duration,
      cron: { type: 'string', maxLength: 200, description: 'a cron expression, as "*/5 * * * *"' },
      timeZone: { type: 'string', maxLength: 64, description: 'a time zone, as Europe/Berlin' },
    }),
    bundles: list(bundle, { min: 1, max: 256 }),
    together: list(list(name, { min: 2, max: 256 }), { min: 0, max: 100 }),
    workers: list(worker, { min: 0, max: 256 }),
    sandbox: { type: 'string', enum: ['required', 'auto', 'off'], description: 'required, auto or off' },
    keep: object({ generations: whole(2, 1000), grace: duration }),
    refusals: object({ retry: duration }),
    scrub: object({
      every: {
        type: 'string',
        pattern: `${durationPattern}|^off$`,
        description: 'a duration, as 1h, or off',
      },
      repair: { type: 'boolean', description: 'true or false' },
      rate: size,
    }),
    staleAfter: duration,
    maxStale: duration,
    onStale: object({ run: command, timeout: duration }, ['run']),
    onFresh: object({ run: command, timeout: duration }, ['run']),
    untrusted: { type: 'string', enum: ['keep', 'rollback'], description: 'keep or rollback' },
    metrics: object({
      listen: { type: 'string', pattern: listenPattern, description: 'HOST:PORT, as 127.0.0.1:9464' },
      socket: absolutePath,
    }),
    events: object({ file: absolutePath }, ['file']),
    limits: object({
      archive: size,
      entries: whole(1, 10_000_000),
      file: size,
      tree: size,
      depth: whole(1, 256),
      ratio: whole(1, 100_000),
      metadata: object({
        root: size,
        timestamp: size,
        snapshot: size,
        targets: size,
        rotations: whole(1, 1024),
      }),
      timeouts,
    }),
  },
  ['repository', 'bundles'],
);

/** Keys of `reset:` that every driver has. */
export const commonResetKeys: Readonly<Record<string, Schema>> = {
  timeout: duration,
  min: whole(0, 10_000),
  retry: whole(0, 100),
  deadline: duration,
};

/** @returns the schema of a `reset:` that names this driver */
export function driverSchema(driver: DriverSchema): Schema {
  const own = driver.properties as Readonly<Record<string, Schema>>;
  return object({ ...own, ...commonResetKeys }, [driver.name, ...driver.required]);
}
