// Every label of an operation on the disk of a host that the sources can make, read from the sources themselves, so that
// an operation without its cases in the crash matrix shows itself. Owns how labels are written; no label is run here.
import * as fs from 'node:fs';
import { join } from 'node:path';

/** Steps that an operation of durable-fs is made of: each adds one of these to its label. */
const stepsOf: Readonly<Record<string, readonly string[]>> = {
  makeDirectory: [''],
  ensureDirectory: [''],
  writeFile: [':write', ':rename', ':discard', ':flush-directory'],
  replaceFile: [':write', ':rename', ':discard'],
  createFile: [''],
  appendFile: ['', ':flush-directory'],
  rename: [':rename', ':flush-to', ':flush-from'],
  linkFile: [':link', ':rename', ':discard', ':flush-directory'],
  linkNew: [''],
  copyNew: [''],
  replaceLink: [':stale', ':create', ':rename', ':discard', ':flush-directory'],
  createLink: [''],
  removeFile: ['', ':flush-directory'],
  removeTree: [''],
  openNew: [''],
  openKept: [''],
  write: [''],
  rewrite: [''],
  truncate: [''],
  setTime: [''],
  touch: [''],
  changeGroup: [''],
  changeOwner: [''],
  changeMode: [''],
  makeScratch: [''],
  discardFile: [''],
  flushDescriptor: [''],
  flushDirectory: [''],
  flushTree: [''],
};

/** What a host runs; the publisher and the server change other disks, and have crash tests of their own. */
const folders = ['agent', 'trust', 'workers', 'platform'] as const;

/** Where a label is not written at the call: the file, the operation, and what it is given. */
const givenLabels: readonly { readonly file: string; readonly method: string; readonly labels: string[] }[] =
  [
    {
      file: 'agent/state/state-file.ts',
      method: 'writeFile',
      labels: ['ledger', 'refusals', 'install-id', 'fleet.key', 'fleet.counter', 'fleet.outcomes'],
    },
    {
      file: 'agent/state-mark/state-mark.ts',
      method: 'replaceFile',
      labels: ['state-mark.write', 'state-mark.copy'],
    },
    { file: 'agent/hooks/run-hook.ts', method: 'removeTree', labels: ['hook.remove', 'canary.remove'] },
    {
      file: 'trust/store/trust-store.ts',
      method: 'ensureDirectory',
      labels: ['trust.directory', 'trust.roots'],
    },
    {
      file: 'trust/store/trust-store.ts',
      method: 'writeFile',
      labels: [
        'trust.root-history',
        'trust.root',
        'trust.timestamp',
        'trust.snapshot',
        'trust.targets',
        'trust.delegated',
        'trust.clock-floor',
      ],
    },
  ];

export interface LabelCall {
  /** Below src/. */
  readonly file: string;
  readonly method: string;
  /** Undefined when it is not written at the call. */
  readonly label: string | undefined;
}

/** @param sources directory src/. @returns every call of an operation of durable-fs in what a host runs */
export function labelCalls(sources: string): LabelCall[] {
  const methods = Object.keys(stepsOf).join('|');
  const call = new RegExp(`\\b(?:durable|durableFs|fs)\\.(${methods})\\(\\s*(?:'([^']+)'|[^)])`, 'g');
  return folders
    .flatMap((folder) => filesIn(sources, folder))
    .filter((file) => !/^platform\/disk\/durable-(fs|calls)\.ts$/.test(file))
    .flatMap((file) => {
      const text = fs.readFileSync(join(sources, file), 'utf8');
      return [...text.matchAll(call)].map(([, method = '', label]) => ({ file, method, label }));
    });
}

function filesIn(sources: string, folder: string): string[] {
  return fs
    .readdirSync(join(sources, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name));
}

/** @throws Error for a call whose labels nobody has declared here */
export function labelsInSources(sources: string): Set<string> {
  const labels = labelCalls(sources).flatMap(({ file, method, label }) => {
    const given = label === undefined ? givenAt(file, method) : [label];
    return given.flatMap((one) => (stepsOf[method] ?? []).map((step) => `${one}${step}`));
  });
  return new Set(labels);
}

function givenAt(file: string, method: string): string[] {
  const found = givenLabels.find((one) => one.file === file && one.method === method);
  if (found === undefined) throw new Error(`${file}: ${method} is given a label that nobody has declared`);
  return found.labels;
}
