// Implements the command line of the public TUF conformance suite with the real client: init, refresh,
// download. Owns only the translation; every rule of trust is in src/. Exit code 0 on success, else 1.
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { toWritError } from '../../../src/core/errors.js';
import { openTargetDigest } from '../../../src/core/tuf/target-digest.js';
import { createDurableFs } from '../../../src/platform/disk/durable-fs.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { openRepositoryClient, type RepositoryClient } from '../../../src/trust/repository-client.js';
import { openRepositorySource } from '../../../src/trust/sources/repository-source.js';
import type { RepositorySource } from '../../../src/trust/sources/source.js';
import { openTrustStore, type TrustStore } from '../../../src/trust/store/trust-store.js';
import { targetBytes } from '../../kit/trust/target-bytes.js';

const flags = {
  'metadata-dir': { type: 'string' },
  'metadata-url': { type: 'string' },
  'target-name': { type: 'string', multiple: true },
  'target-dir': { type: 'string' },
  'target-base-url': { type: 'string' },
} as const;

type Flags = ReturnType<typeof parse>['values'];

function parse(args: string[]) {
  return parseArgs({ args, options: flags, allowPositionals: true });
}

const clock = systemClock;
const fs = createDurableFs();

async function main(args: string[]): Promise<void> {
  const { values, positionals } = parse(args);
  const [command, trustedRoot = ''] = positionals;
  const directory = required(values, 'metadata-dir');
  switch (command) {
    case 'init':
      return init(directory, trustedRoot);
    case 'refresh':
      return withClient(values, async (client) => void (await client.refresh()));
    case 'download':
      return withClient(values, (client) => download(client, values));
    default:
      throw new Error(`unknown command ${command}`);
  }
}

/** Every *.json directly in the directory counts as trusted metadata: the bootstrap root has another name. */
function storeIn(directory: string): TrustStore {
  return openTrustStore({ directory, bootstrapRoot: join(directory, 'bootstrap-root'), fs });
}

function init(directory: string, trustedRoot: string): void {
  copyFileSync(trustedRoot, join(directory, 'bootstrap-root'));
  const store = storeIn(directory);
  const { root } = store.loadRoot();
  store.saveRoot(root.signed.version, root.bytes);
}

async function download(client: RepositoryClient, values: Flags): Promise<void> {
  await client.refresh();
  const directory = required(values, 'target-dir');
  for (const name of values['target-name'] ?? []) {
    const place = join(directory, encodeURIComponent(name));
    // The suite counts requests, so an existing file is not requested again.
    if (!(await isKept(client, name, place))) writeFileSync(place, await targetBytes(client, name));
  }
}

async function isKept(client: RepositoryClient, name: string, place: string): Promise<boolean> {
  const target = await client.find(name);
  if (target === undefined || !existsSync(place)) return false;
  try {
    const digest = openTargetDigest(name, target.file);
    digest.update(readFileSync(place));
    digest.requireSame();
    return true;
  } catch {
    return false;
  }
}

async function withClient(values: Flags, use: (client: RepositoryClient) => Promise<void>): Promise<void> {
  const metadata = required(values, 'metadata-url');
  const source = sourceOf(metadata, values['target-base-url'] ?? metadata);
  const client = openRepositoryClient({ source, store: storeIn(required(values, 'metadata-dir')), clock });
  try {
    await use(client);
  } finally {
    await client.close();
  }
}

/** Repositories of Writ have metadata/ and targets/ below one URL; the suite gives two URLs. */
function sourceOf(metadataUrl: string, targetsUrl: string): RepositorySource {
  const options = { clock, version: 'conformance' };
  const sources = {
    metadata: openRepositorySource(metadataUrl, options),
    targets: openRepositorySource(targetsUrl, options),
  };
  const below = (path: string): [RepositorySource, string] => {
    const [top, ...rest] = path.split('/');
    return [top === 'metadata' ? sources.metadata : sources.targets, rest.join('/')];
  };
  return {
    location: metadataUrl,
    fetch: (path, fetchOptions) => {
      const [source, rest] = below(path);
      return source.fetch(rest, fetchOptions);
    },
    stream: (path, streamOptions) => {
      const [source, rest] = below(path);
      return source.stream(rest, streamOptions);
    },
    close: async () => {
      await sources.metadata.close();
      await sources.targets.close();
    },
  };
}

function required(values: Flags, name: Exclude<keyof typeof flags, 'target-name'>): string {
  const value = values[name];
  if (value === undefined) throw new Error(`--${name} is missing`);
  return value;
}

try {
  await main(process.argv.slice(2));
  process.exit(0);
} catch (error) {
  const { code, message } = toWritError(error);
  process.stderr.write(`${code}: ${message}\n`);
  process.exit(1);
}
