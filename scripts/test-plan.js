// Which test files run, and how: the sets behind `npm test`, `npm run test:long` and `npm run test:all`, the files that share a
// process, the order, and the deadlines. Runs nothing.
import { readdirSync, readFileSync } from 'node:fs';

/** Twenty times what the slowest of the usual ones take alone: a hang is to be ended, and no file of a busy machine. */
const usualTimeoutMs = 240_000;

/** Seconds, as `--slowest` has said them, for what takes more than ten: the longest begin first, each in its own process. */
const slow = {
  'exhaustive/life/life': 400,
  'exhaustive/bake/histories': 400,
  'exhaustive/outages/outages': 180,
  'exhaustive/operations/operations': 180,
  'exhaustive/damage/state-damage': 180,
  'exhaustive/fleet/fleet-on-postgres': 60,
  'exhaustive/fleet/ingest-kills': 40,
  'exhaustive/fleet/ingest-kills-postgres': 60,
  'unit/fleet/fleet-on-embedded': 20,
  'exhaustive/text/lost-text': 150,
  'exhaustive/crash/matrix': 120,
  'exhaustive/kills/kills': 110,
  'exhaustive/interrupted/interrupted-recovery': 80,
  'exhaustive/replay/replay': 60,
  'exhaustive/replay/replay-flushes': 40,
  'exhaustive/differential/differential': 40,
  'exhaustive/clocks/wrong-clocks': 30,
  'exhaustive/interrupted/interrupted-cycle': 30,
  'exhaustive/interrupted/interrupted-refresh': 30,
  'exhaustive/soak/soak': 30,
  'exhaustive/connections/held-connections': 30,
  'exhaustive/counts/counts': 20,
  'exhaustive/heap/small-heap': 25,
  'real/host/supervisord-host': 25,
  'real/workers/haproxy-busy-port': 75,
  'real/demo/demo': 40,
  'real/pages/examples': 25,
  'real/pages/readme': 20,
  'real/pages/pages': 20,
  'exhaustive/packaging/ansible': 40,
  'real/packaging/kubernetes': 15,
  'exhaustive/systemd/systemd-agent': 20,
  'exhaustive/systemd/systemd-driver': 20,
  'exhaustive/systemd/systemd-target': 20,
  'scenario/cycle/faults-of-the-disk': 17,
  'scenario/cycle/pull-faults': 16,
  'exhaustive/crash/matrix.sample': 15,
  'scenario/cli/each-command': 12,
  'scenario/cli/pull-wait': 12,
  'scenario/agent/service-manager': 12,
  'scenario/server/hostile-clients': 12,
  'scenario/ceremony/root-ceremony': 11,
  'exhaustive/text/lost-text.sample': 11,
  'real/host/resolver': 11,
  'real/host/cost': 11,
  'unit/core/text/linear-time': 11,
  'exhaustive/replay/replay.sample': 10,
};
/** What takes longer than this even on a busy machine has a deadline of its own. */
const deadlineFactor = 20;

/**
 * In these folders files share processes: to start one and to load what a whole host is of takes as long as most of the tests
 * themselves. Not the real programs, which a process that ends ends too, and not the exhaustive ones, which are long.
 */
const sharing = ['contract/', 'outages/', 'scenario/', 'truth/', 'unit/'];
/**
 * To load the files takes half as long in processes of 30 as in processes of 12. Not more: a larger process is slower to
 * start programs, and when one dies, each of its files runs again alone.
 */
const filesInProcess = 30;
/** Except for one that waits for processes of its own, which all would wait for, and one that makes a host for all its suites. */
const neverShared = ['unit/trust/attacks/two-processes', 'scenario/cli/pull-output'];
/**
 * Tests of the memory that one thread may have. V8 gives the limit of a process as a flag to each of its threads too, and then the
 * limit of the thread does not count.
 */
const heapOfThreads = ['unit/agent/checks/parse-check'];

/** All of their cases are long: the files of these folders start real programs for seconds, and one file has a table of cases. */
const wholeLong = [
  'real/demo/',
  'real/host/',
  'real/packaging/',
  'real/pages/',
  'scenario/cycle/pull-faults',
];
/** Of another file that has cases for `npm run test:long`: the import of test/kit/assert/long-case.ts. */
const longMark = '/kit/assert/long-case.js';

/** The exhaustive tests are those below test/exhaustive, except for the samples of crashes and power cuts. */
export function isExhaustive(name) {
  return name.startsWith('exhaustive/') && !isSample(name);
}

function isSample(name) {
  return name.endsWith('.sample');
}

/** Whether `npm test` leaves out the whole file. */
export function isWhollyLong(name) {
  return isSample(name) || wholeLong.some((begin) => name.startsWith(begin));
}

/**
 * `usual`: without the exhaustive and the long ones; of a file that has long cases, the others run (WRIT_TEST_SHORT).
 * `long`: the files that have long cases; `longPatterns` selects these.
 * @param root of the compiled tests
 * @param {{ set: 'usual' | 'long' | 'exhaustive' | 'all', wanted: string[], unwanted: string[] }} choice
 * @returns names below the root, without `.test.js`
 */
export function chooseFiles(root, { set, wanted, unwanted }) {
  const all = readdirSync(root, { recursive: true })
    .filter((name) => name.endsWith('.test.js'))
    .map((name) => name.slice(0, -'.test.js'.length))
    .sort();
  const hasLongCases = (name) => readFileSync(`${root}/${name}.test.js`, 'utf8').includes(longMark);
  const isInSet = {
    usual: (name) => !isExhaustive(name) && !isWhollyLong(name),
    long: (name) => !isExhaustive(name) && (isWhollyLong(name) || hasLongCases(name)),
    exhaustive: isExhaustive,
    all: () => true,
  }[set];
  // A whole name selects that file, and no file with a longer name.
  const matches = (name, part) => (all.includes(part) ? name === part : `${name}.test.js`.includes(part));
  return all
    .filter(isInSet)
    .filter((name) => wanted.length === 0 || wanted.some((part) => matches(name, part)))
    .filter((name) => !unwanted.some((part) => matches(name, part)));
}

/** The title of a case or a suite with `longCase` among its options. */
const longTitle =
  /\b(?:describe|it)\(\s*(?:'((?:\\.|[^'\\])*)'|`((?:\\.|[^`\\])*)`),\s*(?:longCase\b|\{[^{}]*\.\.\.longCase\b)/g;

/**
 * @param text of a compiled test file
 * @returns patterns for `--test-name-pattern` that select its long cases and suites; undefined if the whole file is to run, because
 *   it has none or one without a literal title
 */
export function longPatterns(text) {
  const code = text.replace(/^import .*$/gm, '');
  const titles = [...code.matchAll(longTitle)].map(([, literal, template]) => literal ?? template);
  const uses = code.match(/\blongCase\b/g) ?? [];
  if (titles.length === 0 || titles.length !== uses.length) return undefined;
  return titles.map((title) =>
    title
      .split(/\$\{[^}]*\}/)
      .map((part) => part.replace(/\\(.)/g, '$1').replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'))
      .join('.*'),
  );
}

function isInSharingFolder(name) {
  return sharing.some((folder) => name.startsWith(folder));
}

/**
 * @param {readonly string[]} names
 * @param {(name: string) => readonly string[] | undefined} patternsOf what selects the cases of a file; undefined: all of them
 * @returns the processes, each as `runUnit` of scripts/test-process.js takes it; the longest first
 */
export function planProcesses(names, patternsOf = () => undefined) {
  const isShared = (name) =>
    isInSharingFolder(name) &&
    slow[name] === undefined &&
    !neverShared.includes(name) &&
    !heapOfThreads.includes(name);
  const shared = names.filter(isShared);
  // A pattern applies to all files of a process.
  const hasPatterns = (name) => patternsOf(name) !== undefined;
  const groups = [shared.filter(hasPatterns), shared.filter((name) => !hasPatterns(name))].flatMap(dealOut);
  const alone = names.filter((name) => !isShared(name)).map((name) => [name]);
  const seconds = (group) => group.reduce((sum, name) => sum + (slow[name] ?? 1), 0);
  return [...alone, ...groups]
    .sort((a, b) => seconds(b) - seconds(a))
    .map((group) => ({
      names: group,
      patterns: group.flatMap((name) => patternsOf(name) ?? []),
      timeoutMs: timeoutOf(group),
      // Flushes and removals of so many hosts would keep a disk busy; what they do on a disk is tested by the other folders.
      isInMemory: group.every(isInSharingFolder),
      hasHeapLimit: !group.some((name) => heapOfThreads.includes(name)),
    }));
}

/** One by one, because neighbours often take equally long. */
function dealOut(names) {
  const count = Math.ceil(names.length / filesInProcess);
  return Array.from({ length: count }, (_, at) => names.filter((_, index) => index % count === at));
}

/** The deadline of each of them. */
function timeoutOf(names) {
  return Math.max(usualTimeoutMs, ...names.map((name) => (slow[name] ?? 0) * deadlineFactor * 1000));
}
