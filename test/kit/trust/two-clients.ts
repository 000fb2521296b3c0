// Compares two clients, those of Writ and tuf-js, on one changed repository. Both trust the version before it. Compared are
// the accepted files, the end of the refresh and the targets that they find.
import { isDeepStrictEqual } from 'node:util';
import { isWritError, type WritError } from '../../../src/core/errors.js';
import { openRepositoryClient } from '../../../src/trust/repository-client.js';
import { memoryTrustStore } from '../../../src/trust/store/trust-store.js';
import { fakeClock } from '../clock/fake-clock.js';
import { simulatedSource } from '../repository/simulated-source.js';
import { tufJsInMemory } from './tuf-js-in-memory.js';

const topRoles = ['root', 'timestamp', 'snapshot', 'targets'] as const;
export type Stage = (typeof topRoles)[number] | 'end' | 'lookup';

export type Answer =
  | { readonly kind: 'found'; readonly length: number; readonly hashes: unknown }
  | { readonly kind: 'none' }
  | { readonly kind: 'refused'; readonly error: Error };

export interface Verdict {
  /** Trusted files at the end by role. */
  readonly trusted: ReadonlyMap<string, Buffer>;
  /** The error that ended the refresh. */
  readonly error: Error | undefined;
  readonly answers: ReadonlyMap<string, Answer>;
}

export interface Difference {
  readonly stage: Stage;
  /** The client that rejected a file the other accepted; `neither` if both accepted different files. */
  readonly stricter: 'ours' | 'theirs' | 'neither';
  /** The path of a lookup. */
  readonly path: string | undefined;
  readonly ourError: WritError | undefined;
  readonly theirError: Error | undefined;
}

export interface Trial {
  /** Files that both clients trust before. */
  readonly before: ReadonlyMap<string, Buffer>;
  readonly served: ReadonlyMap<string, Buffer>;
  readonly nowMs: number;
  /** Paths to search after a successful refresh. */
  readonly paths: readonly string[];
}

/** @returns the end of a refresh by the client of Writ: trusted files, the error, and a result for each path */
export async function ourVerdict({ before, served, nowMs, paths }: Trial): Promise<Verdict> {
  const store = memoryTrustStore(before.get('root') ?? Buffer.alloc(0));
  store.saveRoot(1, before.get('root') ?? Buffer.alloc(0));
  for (const role of ['timestamp', 'snapshot', 'targets'] as const) {
    const bytes = before.get(role);
    if (bytes !== undefined) store.saveFile(role, bytes);
  }
  const client = openRepositoryClient({
    source: simulatedSource(served, []),
    store,
    clock: fakeClock({ nowMs }),
  });
  const error = await failureOf(() => client.refresh());
  const answers =
    error === undefined
      ? await answersOf(
          paths,
          (path) => client.find(path),
          (found) => found.file,
        )
      : new Map();
  const files = store.loadFiles();
  const trusted = new Map([['root', Buffer.from(store.loadRoot().root.bytes)]]);
  for (const role of ['timestamp', 'snapshot', 'targets'] as const)
    trusted.set(role, Buffer.from(files[role] ?? ''));
  return { trusted, error, answers };
}

/** @returns the end of the same refresh by tuf-js */
export async function theirVerdict({ before, served, nowMs, paths }: Trial): Promise<Verdict> {
  const stored = new Map(before);
  const client = tufJsInMemory({ stored, served, nowMs });
  const error = await failureOf(() => client.refresh());
  const answers =
    error === undefined
      ? await answersOf(
          paths,
          (path) => client.find(path),
          (found) => found,
        )
      : new Map();
  return { trusted: stored, error, answers };
}

async function failureOf(act: () => Promise<unknown>): Promise<Error | undefined> {
  try {
    await act();
    return undefined;
  } catch (error) {
    if (error instanceof Error) return error;
    throw error;
  }
}

interface Entry {
  readonly length: number;
  readonly hashes: unknown;
}

async function answersOf<T>(
  paths: readonly string[],
  find: (path: string) => Promise<T | undefined>,
  entryOf: (found: T) => Entry,
): Promise<Map<string, Answer>> {
  const answers = new Map<string, Answer>();
  for (const path of paths) {
    try {
      const found = await find(path);
      const entry = found === undefined ? undefined : entryOf(found);
      answers.set(
        path,
        entry === undefined
          ? { kind: 'none' }
          : { kind: 'found', length: entry.length, hashes: { ...(entry.hashes as object) } },
      );
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      answers.set(path, { kind: 'refused', error });
    }
  }
  return answers;
}

/** @returns the first difference of the refresh in workflow order, or all differences of the found targets */
export function differencesOf(ours: Verdict, theirs: Verdict, { before }: Trial): Difference[] {
  const errors = {
    ourError: isWritError(ours.error) ? ours.error : undefined,
    theirError: theirs.error,
    path: undefined,
  };
  for (const role of topRoles) {
    const nothing = Buffer.alloc(0);
    const mine = ours.trusted.get(role) ?? nothing;
    const other = theirs.trusted.get(role) ?? nothing;
    if (mine.equals(other)) continue;
    const old = before.get(role) ?? nothing;
    if (old.equals(mine)) return [{ stage: role, stricter: 'ours', ...errors }];
    return [{ stage: role, stricter: old.equals(other) ? 'theirs' : 'neither', ...errors }];
  }
  if ((ours.error === undefined) !== (theirs.error === undefined)) {
    return [{ stage: 'end', stricter: ours.error === undefined ? 'theirs' : 'ours', ...errors }];
  }
  return [...ours.answers].flatMap(([path, mine]) => {
    const other = theirs.answers.get(path);
    return other === undefined || sameAnswer(mine, other) ? [] : [lookupDifference(path, mine, other)];
  });
}

function lookupDifference(path: string, mine: Answer, other: Answer): Difference {
  return {
    stage: 'lookup',
    stricter: mine.kind === 'refused' ? 'ours' : other.kind === 'refused' ? 'theirs' : 'neither',
    path,
    ourError: mine.kind === 'refused' && isWritError(mine.error) ? mine.error : undefined,
    theirError: other.kind === 'refused' ? other.error : undefined,
  };
}

function sameAnswer(mine: Answer, other: Answer): boolean {
  return mine.kind === 'found' && other.kind === 'found'
    ? isDeepStrictEqual(mine, other)
    : mine.kind === other.kind;
}
