// The owner of each member of the ledger, and the detection of other changes. Owns the table and the rules;
// ledger-sections.test applies them to the sources.
import type { Ledger } from '../../../src/agent/state/ledger.js';
import { type SourceFile, withoutComments } from '../../kit/sources/source-files.js';

/** The file with the type of the ledger and the one cast to it. */
export const sealedIn = 'agent/state/ledger.ts';

type Member = Exclude<keyof Ledger, 'writ'>;

/** The file below src that declares the section of each member. tsc reports a missing member. */
export const ledgerOwners: Readonly<Record<Member, string>> = {
  nextGeneration: 'agent/generations/generations.ts',
  lastMtimeSeconds: 'agent/generations/generations.ts',
  retired: 'agent/generations/generation-notes.ts',
  links: 'agent/generations/generation-notes.ts',
  previous: 'agent/activation/commit-ledger.ts',
  lastKnownGood: 'agent/activation/commit-ledger.ts',
  settled: 'agent/activation/commit-ledger.ts',
  committedCycle: 'agent/activation/commit-ledger.ts',
  activatedAtMs: 'agent/activation/commit-ledger.ts',
  accepted: 'agent/select/accepted-releases.ts',
  channels: 'agent/select/accepted-releases.ts',
  holds: 'agent/select/holds-and-blocks.ts',
  crashes: 'agent/select/holds-and-blocks.ts',
  blocked: 'agent/select/holds-and-blocks.ts',
  sandboxWorked: 'agent/hooks/watch-sandbox.ts',
  pause: 'agent/select/pause.ts',
  waiting: 'agent/select/waits.ts',
  spaceNeeded: 'agent/select/space-memory.ts',
  workers: 'agent/notify/worker-ledger.ts',
  unreadSets: 'agent/notify/worker-ledger.ts',
  movedAtMs: 'agent/notify/worker-ledger.ts',
  loadedBootId: 'agent/notify/boot-loaders.ts',
  loadPending: 'agent/notify/boot-loaders.ts',
  unloaded: 'agent/notify/run-loaders.ts',
  unheardCanaries: 'agent/checks/silent-canaries.ts',
  retryAfterUntilMs: 'agent/cycle/refresh-trust.ts',
  stale: 'agent/freshness/stale-watch.ts',
  missed: 'agent/freshness/missed-releases.ts',
  scrub: 'agent/integrity/scrub.ts',
  verifiedBootId: 'agent/startup/start-host.ts',
  notices: 'agent/startup/notices.ts',
  bakes: 'agent/settled/settled-ledger.ts',
  settledReleases: 'agent/settled/settled-ledger.ts',
  contactBefore: 'agent/settled/contact-ledger.ts',
  lostContacts: 'agent/settled/contact-ledger.ts',
  unsettled: 'agent/settled/settled-ledger.ts',
  runs: 'agent/settled/settled-ledger.ts',
};

/** @returns `member: file` for each member in each section, sorted */
export function declaredSections(sources: readonly SourceFile[]): string[] {
  return sources
    .flatMap((file) =>
      sectionsIn(file)
        .flatMap(membersIn)
        .map((member) => `${member}: ${file.path}`),
    )
    .sort();
}

/** A section that is not exported or renamed, with members as string literals. */
const declaration = /^const \w+ = ledgerSection\(\s*((?:'\w+'(?:,\s*)?)+)\);$/gm;

function sectionsIn({ text }: SourceFile): string[] {
  return [...withoutComments(text).matchAll(declaration)].map(([, names = '']) => names);
}

function membersIn(names: string): string[] {
  return [...names.matchAll(/\w+/g)].map(([name]) => name);
}

/** @returns files that use ledgerSection in another form: this test cannot read its members, or other files can use it */
export function oddSections(sources: readonly SourceFile[]): string[] {
  return pathsOf(sources, (file) => {
    if (file.path === sealedIn) return false;
    const uses = file.code.replace(/^import\s[^;]*;/gm, '').match(/\bledgerSection\b/g) ?? [];
    const isRenamed = file.imports.some(({ names }) => /\bledgerSection\s+as\b/.test(names));
    return isRenamed || uses.length !== sectionsIn(file).length;
  });
}

/** @returns files with a cast to the ledger, once for each */
export function castsToLedger(sources: readonly SourceFile[]): string[] {
  return sources.flatMap(({ path, code }) => (code.match(/\bas\s+Ledger\b(?!\[)/g) ?? []).map(() => path));
}

function pathsOf(sources: readonly SourceFile[], isOdd: (file: SourceFile) => boolean): string[] {
  return sources.filter(isOdd).map(({ path }) => path);
}
