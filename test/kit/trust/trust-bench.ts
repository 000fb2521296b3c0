// The trust of a host with a simulated repository over several process runs. It asserts that the store has only bytes that
// were served.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ErrorCode } from '../../../src/core/error-codes.js';
import { WritError } from '../../../src/core/errors.js';
import type { MetadataLimits } from '../../../src/core/limits.js';
import type { RepositoryClient } from '../../../src/trust/repository-client.js';
import type { RepositorySource } from '../../../src/trust/sources/source.js';
import { type FakeClock, fakeClock } from '../clock/fake-clock.js';
import { tempDir } from '../disk/temp-dir.js';
import { RepositorySimulator, type SimulatorOptions } from '../repository/repository-simulator.js';
import { trustHostAt } from './trust-host.js';

/** `trusted`, or the code of the error. */
export type Verdict = ErrorCode | 'trusted';

export interface TrustBench extends Disposable {
  readonly clock: FakeClock;
  readonly repository: RepositorySimulator;
  /** Directory of the store. */
  readonly trust: string;
  /** Client of the current process run. */
  readonly client: RepositoryClient;
  /** The error of the last refresh; undefined if it succeeded. */
  readonly refusal: WritError | undefined;
  /** Starts a new process run with the same store; `trustedRoot` replaces the bootstrap root. */
  restart(options?: { readonly trustedRoot?: Uint8Array }): void;
  refresh(): Promise<Verdict>;
  /** Searches the head of `stable`: `trusted` if it is signed, `unknown` if no role lists it. */
  find(bundle: string): Promise<Verdict | 'unknown'>;
  /** @returns names of metadata requested since the last call; `name?` if conditional */
  asked(): string[];
  /** @returns the stored version by role; asserts that each file was served, byte for byte */
  stored(): Record<string, number>;
  storedBytes(role: string): Buffer;
}

export interface TrustBenchOptions extends Partial<SimulatorOptions> {
  readonly limits?: MetadataLimits;
  /** Wraps the source of the simulator. */
  readonly source?: (source: RepositorySource) => RepositorySource;
}

export const startMs = Date.UTC(2026, 10, 1);

/** @example using bench = trustBench(); assert.equal(await bench.refresh(), 'trusted'); */
export function trustBench({ limits, source, ...rest }: TrustBenchOptions = {}): TrustBench {
  const dir = tempDir();
  const clock = fakeClock({ nowMs: startMs, mode: 'skip' });
  const repository = new RepositorySimulator({ nowMs: startMs, ...rest });
  const host = trustHostAt(dir, clock);
  const { trust } = host;
  const served = new Set<string>();
  const ship = (bytes: Uint8Array): void => {
    host.bootstrap(bytes);
    served.add(digestOf(bytes));
  };
  const open = (): RepositoryClient => {
    const plain = repository.source();
    return host.boot(noteServed(source?.(plain) ?? plain, served), {}, limits);
  };
  ship(repository.bootstrapRoot);
  let client = open();
  let refusal: WritError | undefined;

  return {
    clock,
    repository,
    trust,
    get client() {
      return client;
    },
    get refusal() {
      return refusal;
    },
    restart: ({ trustedRoot } = {}) => {
      if (trustedRoot !== undefined) ship(trustedRoot);
      client = open();
    },
    refresh: async () => {
      refusal = await refusalOf(client.refresh());
      return refusal?.code ?? 'trusted';
    },
    find: async (bundle) => {
      const looking = client.target(bundle, 'stable');
      const refused = await refusalOf(looking);
      if (refused !== undefined) return refused.code;
      return (await looking) === undefined ? 'unknown' : 'trusted';
    },
    asked: () => repository.takeRequests().map(shortRequest),
    stored: () => readStored(trust, served),
    storedBytes: (role) => readFileSync(join(trust, `${encodeURIComponent(role)}.json`)),
    [Symbol.dispose]: () => host[Symbol.dispose](),
  };
}

/** @returns the WritError of a promise; undefined if it is fulfilled. @throws any other error of it */
export async function refusalOf(promise: Promise<unknown>): Promise<WritError | undefined> {
  try {
    await promise;
    return undefined;
  } catch (error) {
    if (error instanceof WritError) return error;
    throw error;
  }
}

/** The complete requests of a first refresh in order. */
export const firstRequests = ['2.root.json', 'timestamp.json', '1.snapshot.json', '1.targets.json'];

/** The stored versions after a first refresh. */
export const firstVersions = { root: 1, snapshot: 1, targets: 1, timestamp: 1 };

function noteServed(source: RepositorySource, served: Set<string>): RepositorySource {
  return {
    ...source,
    fetch: async (path, options) => {
      const verdict = await source.fetch(path, options);
      if (verdict.kind === 'found') served.add(digestOf(verdict.bytes));
      return verdict;
    },
  };
}

function readStored(trust: string, served: ReadonlySet<string>): Record<string, number> {
  const names = readdirSync(trust).filter((name) => name.endsWith('.json'));
  const versions = names.sort().map((name) => {
    const bytes = readFileSync(join(trust, name));
    assert.ok(served.has(digestOf(bytes)), `${name} in the store was never served`);
    return [
      decodeURIComponent(name.replace(/\.json$/, '')),
      JSON.parse(bytes.toString()).signed.version,
    ] as const;
  });
  return Object.fromEntries(versions);
}

function shortRequest(request: string): string {
  return request.replace(/^GET metadata\//, '').replace(/ if-none-match$/, '?');
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
