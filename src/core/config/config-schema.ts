// The JSON Schema of the configuration file: the only declaration of each key, with its type and bounds. A key without a
// feature is not declared, and is rejected as unknown. config-rules has the rules that a schema cannot express.
import { durationPattern } from '../names.js';
import type { GroupOf, Key, Keys, Schema, ValueOf } from './config-keys.js';
import * as key from './config-keys.js';
import { notNowOfHook, unreachableKey } from './not-now-keys.js';

/** The properties of a driver that the schema needs (workers/contract/driver.ts has the complete type). */
export interface DriverSchema {
  readonly name: string;
  readonly properties: Readonly<Record<string, object>>;
  readonly required: readonly string[];
  /** True where the driver knows its processes without `process`. */
  readonly knowsProcess?: boolean;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

const timeout = key.durationFrom(1, hourMs);
const age = key.durationFrom(1000, 365 * dayMs);
const memory = key.sizeFrom(1e6, 1e12);
/** The trust store ignores metadata files of more than 16 MB. */
const metadataSize = key.sizeFrom(1000, 16e6);

const paths: Key<readonly string[]> = {
  ...key.list(
    {
      // Without `//`, `/./` and `/../`: the path that is compared with the state directory must be the mounted one.
      ...key.regex(
        '^(?!.*//)(?!.*/\\.{1,2}(/|$))/[^\\u0000-\\u001f]+$',
        'an absolute path without . and .., as /run/knot-resolver',
      ),
      maxLength: 4000,
    },
    { min: 0, max: 100 },
  ),
  uniqueItems: true,
  description: 'a list of 0 to 100 entries, each once',
};

/** Keys that have an effect only in a sandbox, as `memory` has. */
export const sandboxKeys = {
  user: key.account('the name or number of a user'),
  network: key.boolean,
  binds: paths,
  writable: paths,
  userNamespace: key.boolean,
  nestedNamespaces: key.boolean,
  processes: key.whole(1, 100_000),
};

/** Keys of every command that judges policy. */
const policyCommandKeys = {
  run: key.commandLine,
  timeout,
  memory,
  // A longer pattern belongs into a program.
  reject: {
    ...key.textUpTo(1000, 'a regular expression of at most 1000 characters, as "^ERROR"'),
    minLength: 1,
  },
  retry: key.whole(0, 100),
  notNow: notNowOfHook,
  ...sandboxKeys,
};
/** Keys of commands that connect to a daemon, which may be unreachable. */
const daemonCommandKeys = { ...policyCommandKeys, unreachable: unreachableKey, pidFile: key.absolutePath };
/** Keys of commands that may also change the host. */
const groupHookKeys = { ...daemonCommandKeys, sandbox: key.choice(['off'], 'off, or left out') };

const check = key.group(
  {
    ...policyCommandKeys,
    name: key.regex('^[^\\u0000-\\u001f\\u007f]{1,80}$', 'one line of 1 to 80 characters'),
    parse: key.list(key.glob, { min: 1, max: 100 }),
    schema: {
      ...key.regex(
        '^(/|bundle:[^/])[^\\u0000-\\u001f]*$',
        'an absolute path, or bundle:PATH for a file of the bundle',
      ),
      maxLength: 4000,
    },
    change: key.nonEmptyGroup(
      { removed: key.percentage, bytes: key.percentRange, files: key.list(key.glob, { min: 1, max: 100 }) },
      '{removed: 50%, bytes: 50%..200%}',
    ),
  },
  ['name'],
);

const contact = key.choice(['none', 'repository', 'fleet'], 'none, repository or fleet');
const bundle = key.group(
  {
    name: key.name,
    channel: key.name,
    checks: key.list(check, { min: 0, max: 100 }),
    // Never executable, and writable only by the owner: a worker must not be able to change policy.
    mode: key.regex(
      '^0[46][04][04]$',
      'a file mode in quotes without write or execute for others, as "0644" or "0640"',
    ),
    group: key.account('the name or number of a group'),
    bake: key.group({ for: key.durationOrZero(1000, 7 * dayMs), restarts: key.whole(0, 100), contact }),
  },
  ['name'],
);

const whenKeys = {
  reset: key.list(key.glob, { min: 1, max: 100 }),
  restart: key.list(key.glob, { min: 1, max: 100 }),
};
const when: Key<readonly string[] | GroupOf<typeof whenKeys>> = {
  ...key.list(key.glob, { min: 0, max: 100 }),
  type: ['array', 'object'],
  description: 'a list of globs, or a group {reset: GLOBS, restart: GLOBS}',
  additionalProperties: false,
  properties: whenKeys,
};

/** Keys of `reset:` for every driver. */
export const commonResetKeys = {
  timeout,
  min: key.whole(0, 10_000),
  retry: key.whole(0, 100),
  deadline: timeout,
};

/** driverSchemaOf has its complete schema, because its keys depend on the driver that it names. */
const reset: Key<Readonly<Record<string, unknown>> & GroupOf<typeof commonResetKeys>> = {
  type: 'object',
  description: 'a group of keys that names a driver, as {signal: HUP}',
};

const worker = key.group(
  {
    name: key.name,
    uses: key.list(key.name, { min: 1, max: 256 }),
    when,
    rolling: key.whole(1, 10_000),
    onDead: key.choice(['restart', 'report'], 'restart or report'),
    canary: key.group({ ...daemonCommandKeys, start: key.commandLine, probe: key.commandLine }),
    load: key.group(groupHookKeys, ['run']),
    reset,
    process: key.processKey,
    confirm: {
      ...key.choice(['required', 'warn', 'accept', 'optional'], 'required, warn or accept'),
      retired: ['optional'],
    },
    settle: key.durationFrom(0, dayMs),
    minInterval: key.durationFrom(0, 30 * dayMs),
    probe: key.group({ ...groupHookKeys, ...key.probeTimeKeys }, ['run']),
  },
  ['name', 'uses'],
);

const mirrorKeys = {
  url: key.textUpTo(2000, 'a URL, as https://policy.example.net/'),
  ca: key.absolutePath,
  redirects: key.list(
    key.regex(
      '^([a-z0-9]([a-z0-9.-]{0,252})|\\[[0-9a-f:.]{2,45}\\])(:[1-9][0-9]{0,4})?$',
      'a host in small letters, with a port if it is not 443, as cdn.example.net:8443',
    ),
    { min: 0, max: 16 },
  ),
};
const mirror: Key<string | GroupOf<typeof mirrorKeys, 'url'>> = {
  ...key.group(mirrorKeys, ['url']),
  type: ['string', 'object'],
  description: 'a URL, or a group of keys as {url: URL, ca: FILE}',
  maxLength: 2000,
};
const repository: Key<ValueOf<typeof mirror> | readonly ValueOf<typeof mirror>[]> = {
  ...mirror,
  type: ['string', 'array', 'object'],
  description: 'a URL, a group {url: URL, ca: FILE}, or a list of 1 to 16 of these',
  items: mirror,
  minItems: 1,
  maxItems: 16,
};

const labels: Key<Readonly<Record<string, string>>> = {
  type: 'object',
  maxProperties: 64,
  propertyNames: key.regex('^[a-z0-9._-]{1,63}$', 'a name of a label: up to 63 of a-z 0-9 . _ -'),
  additionalProperties: key.regex(
    '^[\\p{L}\\p{M}\\p{N}\\p{P}\\p{S} ]{0,255}$',
    'a text of at most 255 printable characters',
  ),
  description: 'a group of up to 64 labels, as {site: fra1}',
};

const staleHook = key.group({ run: key.commandLine, timeout }, ['run']);

export const configSchema = key.group(
  {
    repository,
    root: key.absolutePath,
    state: key.absolutePath,
    policy: key.absolutePath,
    run: key.absolutePath,
    socket: key.absolutePath,
    host: key.group({
      id: key.regex(
        '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$',
        'a name of the host: up to 128 letters, digits and . _ : -',
      ),
      labels,
    }),
    poll: key.group({
      every: key.durationFrom(1000, 30 * dayMs),
      cron: key.textUpTo(200, 'a cron expression, as "*/5 * * * *"'),
      timeZone: key.textUpTo(64, 'a time zone, as Europe/Berlin'),
    }),
    bundles: key.list(bundle, { min: 1, max: 256 }),
    together: key.list(key.list(key.name, { min: 2, max: 256 }), { min: 0, max: 100 }),
    workers: key.list(worker, { min: 0, max: 256 }),
    sandbox: key.choice(['required', 'auto', 'off'], 'required, auto or off'),
    keep: key.group({ generations: key.whole(2, 1000), grace: key.durationFrom(0, 30 * dayMs) }),
    refusals: key.group({ retry: key.durationFrom(1000, dayMs) }),
    scrub: key.group({
      every: {
        ...key.durationFrom(10_000, 30 * dayMs),
        pattern: `${durationPattern}|^off$`,
        description: 'a duration, as 1h, or off',
      },
      repair: key.boolean,
      rate: key.sizeFrom(100_000, 10e9),
    }),
    staleAfter: age,
    maxStale: age,
    release: key.group({ staleAfter: age, maxStale: age }),
    onStale: staleHook,
    onFresh: staleHook,
    untrusted: key.choice(['keep', 'rollback'], 'keep or rollback'),
    metrics: key.group({
      listen: key.regex(
        '^(\\[[0-9a-fA-F:.]{2,45}\\]|[A-Za-z0-9][A-Za-z0-9.-]{0,252}):[0-9]{1,5}$',
        'HOST:PORT, as 127.0.0.1:9464',
      ),
      socket: key.absolutePath,
    }),
    events: key.group({ file: key.absolutePath }, ['file']),
    proxy: key.proxy,
    fleet: key.group(
      {
        url: key.textUpTo(2000, 'a URL, as https://fleet.example.net/'),
        ca: key.absolutePath,
        tokenFile: key.absolutePath,
        // A server may increase it up to an hour, and never decrease it.
        every: key.durationFrom(5000, hourMs),
        detail: key.choice(['codes', 'line', 'full'], 'codes, line or full'),
        ephemeral: key.boolean,
        replaces: key.boolean,
      },
      ['url', 'tokenFile'],
    ),
    read: key.group({ group: key.account('the name or number of a group'), detail: key.boolean }, ['group']),
    limits: key.group({
      archive: key.size,
      entries: key.whole(1, 10_000_000),
      file: key.size,
      tree: key.size,
      depth: key.whole(1, 256),
      ratio: key.whole(1, 100_000),
      metadata: key.group({
        root: metadataSize,
        timestamp: metadataSize,
        snapshot: metadataSize,
        targets: metadataSize,
        rotations: key.whole(1, 1024),
      }),
      timeouts: key.group({
        connect: key.durationFrom(100, 10 * minuteMs),
        idle: key.durationFrom(100, 10 * minuteMs),
        metadata: key.durationFrom(1000, hourMs),
        refresh: key.durationFrom(1000, hourMs),
        archive: key.durationFrom(1000, dayMs),
      }),
    }),
  },
  ['repository', 'bundles'],
);

/** A file that schema and rules have accepted. */
export type ConfigFile = ValueOf<typeof configSchema>;

const driverSchemas = new WeakMap<DriverSchema, Schema>();

/** @returns the schema of a `reset:` that names this driver; the same object each time */
export function driverSchemaOf(driver: DriverSchema): Schema {
  const known = driverSchemas.get(driver);
  if (known !== undefined) return known;
  const keys: Keys = { ...(driver.properties as Keys), ...commonResetKeys };
  const schema = key.group(keys, [driver.name, ...driver.required]);
  driverSchemas.set(driver, schema);
  return schema;
}
