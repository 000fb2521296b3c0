// Operations that only one place of the sources may contain, with the reason of each rule. Owns the rules and the detection
// of violations; architecture-places.test applies them to the sources.
import type { SourceFile } from '../../kit/sources/source-files.js';

export interface Confined {
  readonly what: string;
  readonly used: (file: SourceFile) => boolean;
  /** The paths below src that may contain the operation. */
  readonly only: RegExp;
  readonly because: string;
}

function importing(name: RegExp): (file: SourceFile) => boolean {
  return ({ imports }) => imports.some(({ specifier }) => name.test(specifier));
}

function containing(pattern: RegExp): (file: SourceFile) => boolean {
  return ({ code }) => pattern.test(code);
}

/** @returns the names of namespace imports of node:fs, as `fs` */
function namespacesOfFs({ imports }: SourceFile): string[] {
  return imports
    .filter(({ specifier }) => /^node:fs\b/.test(specifier))
    .flatMap(({ names }) => /\*\s+as\s+(\w+)/.exec(names)?.[1] ?? []);
}

/** True when a function of node:fs is called or imported by this name, in any of its three forms. */
function usingOfFs(names: string): (file: SourceFile) => boolean {
  const named = new RegExp(`\\b(?:${names})(?:Sync)?\\b`);
  return (file) => {
    const imported = file.imports.some(
      (line) => /^node:fs\b/.test(line.specifier) && named.test(line.names.replace(/\btype\s+\w+/g, '')),
    );
    const spaces = ['fsp', ...namespacesOfFs(file)].join('|');
    const call = `(?:(?<![.\\w])(?:${spaces})|\\bpromises)\\s*\\.\\s*(?:${names})(?:Sync)?\\b`;
    return imported || new RegExp(call).test(file.code);
  };
}

const renamesOrFlushes = usingOfFs('rename|symlink|link|fsync|fdatasync');

const changesDisk = usingOfFs(
  'write\\w*|appendFile|mkdir|mkdtemp|rm|rmdir|unlink|[fl]?utimes|[fl]?chmod|[fl]?chown|f?truncate|copyFile|cp' +
    '|createWriteStream',
);

/** Detects a flag for writing, or flags in a string, because this test cannot read the string. */
function opensForWriting({ code }: SourceFile): boolean {
  return (
    /\bO_(?:WRONLY|RDWR|CREAT|EXCL|APPEND|TRUNC)\b/.test(code) ||
    /\bopen(?:Sync)?\s*\([^,;]*,\s*(?:''|`)/.test(code)
  );
}

export const confined: readonly Confined[] = [
  {
    what: 'reading a file without a bound',
    used: usingOfFs('readFile|createReadStream|open'),
    // Trees, archives and repositories, read in pieces up to a signed length or a bound; the configuration likewise. A store
    // makes its own file, and reads it by SQLite.
    only: /^(?:(?:platform|server|publisher|cli|sdk)\/|fleet\/store\/store-directory\.ts$|trust\/sources\/file-source\.ts$|agent\/(?:generations\/verify-tree|staging\/(?:base-files|decompress|retained-archives)|checks\/parse-check-worker|config\/config-file)\.ts$)/,
    because: 'an attacker can replace a file by a FIFO or a huge file, and platform/read-file has a bound',
  },
  {
    what: 'rename, symlink, link and fsync',
    used: renamesOrFlushes,
    only: /^platform\/disk\/durable-\w+\.ts$/,
    because:
      'the order of durable operations is proven in one place; a rename elsewhere has no label to crash at',
  },
  {
    what: 'changing the disk of a host',
    used: (file) =>
      /^(?:agent|trust|workers|platform|sdk)\//.test(file.path) &&
      (changesDisk(file) || opensForWriting(file)),
    only: /^platform\/(disk\/durable-\w+|process\/control-group|telemetry\/standard-streams)\.ts$/,
    because:
      'the crash matrix kills and fails only labelled operations of durable-fs; control groups and stderr are no state',
  },
  {
    what: 'the system calls of durable-fs',
    used: ({ imports }) =>
      imports.some(({ file = '' }) => /^platform\/disk\/durable-(?:calls|remove)\.ts$/.test(file)),
    only: /^platform\/disk\/durable-(?:fs|calls|rename)\.ts$/,
    because: 'they carry no label',
  },
  {
    what: 'starting programs',
    used: importing(/^node:child_process$/),
    only: /^platform\/process\/run-command\.ts$/,
    because:
      'only this file gives programs a cleared environment, a deadline, bounded output and a killed group',
  },
  {
    what: 'undici',
    used: importing(/^#?undici/),
    only: /^platform\/net\/http[^/]*\.ts$/,
    because: 'only these files give requests deadlines, bounds and refused redirects',
  },
  {
    what: 'fetch and clients of node:http',
    used: containing(/(?<![.\w])fetch\s*\(\s*[`'"]|\bhttps?\.(?:get|request)\b|\bglobalThis\.fetch\b/),
    only: /^platform\/net\/http[^/]*\.ts$/,
    because: 'other requests would have no deadlines and bounds',
  },
  {
    what: 'tar',
    used: importing(/^tar(?:\/|$)/),
    only: /^publisher\/archive\/build-bundle[^/]*\.ts$/,
    because:
      'archives are deterministic because one function makes them; hosts read them with their own strict reader',
  },
  {
    what: 'tweetnacl',
    used: importing(/^tweetnacl/),
    only: /^publisher\//,
    because:
      'secrets are used in one folder; hosts verify with node:crypto, which refuses malleable signatures',
  },
  {
    what: 'signatures of HTTP messages',
    used: importing(/^http-message-signatures/),
    only: /^(?:agent\/fleet\/sign-request\.ts$|fleet\/)/,
    because: 'it is ten megabytes, and only signing may load it',
  },
  {
    what: 'worker threads',
    used: importing(/^node:worker_threads$/),
    only: /^(?:agent\/checks\/parse-check[^/]*|fleet\/store\/sqlite-(?:connection|thread))\.ts$/,
    because:
      'a foreign parser needs a bounded thread, a database one that waits for the disk; others would hide the order',
  },
  {
    what: 'pino',
    used: importing(/^pino/),
    only: /^platform\/telemetry\/log\.ts$/,
    because: 'every line has the same fields and is written synchronously',
  },
  {
    what: 'prom-client',
    used: importing(/^prom-client/),
    only: /^platform\/telemetry\/metrics\.ts$/,
    because: 'its successor needs a newer Node, and then only one file changes',
  },
  {
    what: 'commander and prompts',
    used: importing(/^#?(?:commander|@inquirer\/)/),
    only: /^cli\//,
    because: 'only the command line interacts with people',
  },
  {
    what: 'console and writing to the standard streams',
    used: containing(
      /\bconsole\s*\.|\b(?:stdout|stderr|process\s*\.\s*std(?:out|err))\s*\.\s*write\b|\bwriteSync\(\s*[12]\b/,
    ),
    only: /^platform\/telemetry\/standard-streams\.ts$/,
    because: 'a failed write of text is counted and does not end the program; scripts read stdout',
  },
  {
    what: 'the clock and timers',
    used: ({ code, imports }) =>
      /\bDate\s*\.\s*now\b|\bnew\s+Date\s*\(\s*\)|\bperformance\s*\.\s*now\b/.test(code) ||
      /\bset(?:Timeout|Interval)\s*\(|\bAbortSignal\s*\.\s*timeout\b|\bhrtime\b/.test(code) ||
      imports.some(({ specifier }) => /^node:(?:timers|perf_hooks)/.test(specifier)),
    only: /^(?:platform|sdk)\//,
    because: 'time comes through Clock, so that a test can move it; the sdk has a delay of its own to inject',
  },
  {
    what: 'randomness in core, trust and workers',
    used: ({ path, code }) =>
      /^(?:core|trust|workers)\//.test(path) &&
      /\bMath\s*\.\s*random\b|\brandom(?:Bytes|UUID|Int)\b/.test(code),
    only: /^$/,
    because: 'a decision must give the same verdict for the same input',
  },
];
