// Reads every label of a disk operation of a host from the sources, so that an operation without cases in the crash matrix is
// found. Owns the syntax of labels; runs no operation.
import * as fs from 'node:fs';
import { join } from 'node:path';

/** The steps of durable-fs operations: each step adds its suffix to the label. */
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

/** The folders of host code. The publisher and the server change other disks and have crash tests of their own. */
const folders = ['agent', 'trust', 'workers', 'platform'] as const;

/** Calls that receive their label as an argument: the file, the operation, and the labels. */
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
  /** Path below src/. */
  readonly file: string;
  readonly method: string;
  /** Undefined when the call has no literal label. */
  readonly label: string | undefined;
}

/** @param sources the directory src/ @returns every call of a durable-fs operation in host code */
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

/** @throws Error for a call without a literal or declared label */
export function labelsInSources(sources: string): Set<string> {
  const labels = labelCalls(sources).flatMap(({ file, method, label }) => {
    const given = label === undefined ? givenAt(file, method) : [label];
    return given.flatMap((one) => (stepsOf[method] ?? []).map((step) => `${one}${step}`));
  });
  return new Set(labels);
}

function givenAt(file: string, method: string): string[] {
  const found = givenLabels.find((one) => one.file === file && one.method === method);
  if (found === undefined)
    throw new Error(`${file}: ${method} has a label that givenLabels does not declare`);
  return found.labels;
}
