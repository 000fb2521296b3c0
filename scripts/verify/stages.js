// The stages of the gate (.ci/run) and of `npm run verify`: what each one runs, and its share of the time. A table: runs nothing.

/**
 * @typedef {object} Stage
 * @property {string} name as `npm run verify -- NAME` takes it
 * @property {number} shareMinutes on an idle machine with two cores; a stage that takes longer is named, and does not fail
 * @property {readonly (readonly string[])[]} commands one after the other, in the directory of the checkout, until one fails
 * @property {boolean} [usesNewestNode] if the commands run with the newest LTS of Node in place of this one
 * @property {boolean} [needsRoot] if the commands mount, make namespaces, or start daemons that change their user
 * @property {number} [parts] if the commands take `--part K/PARTS`, and each part is a stage of its own
 */

const npm = (...args) => ['npm', 'run', ...args];
const tests = (...args) => ['node', 'scripts/run-tests.js', ...args];

/**
 * One change of the sources for each of ten areas, which a test must notice: metadata, trust store, staging, checks, notifying
 * workers, drivers, disk, publisher, server, fleet.
 */
export const gateMutations = ['T1', 'T31', 'A13', 'U1', 'U15', 'W1', 'D1', 'B3', 'V1', 'FLEETSTORE1'];

/** The whole fails at so many minutes times the slowness of the machine; the sum of the shares is half of it. */
export const gateLimitMinutes = 40;

const documents = ['node', '--test', 'site/'];
const lint = {
  name: 'lint',
  commands: [npm('lint'), ['hadolint', 'Dockerfile'], documents, ['node', 'site/build.js']],
};
const unitsOnNewest = [
  'contract/',
  'unit/platform/',
  'unit/trust/',
  'unit/workers/',
  'unit/cli/',
  'real/host/resolver',
];

/** @type {readonly Stage[]} */
export const gateStages = [
  { ...lint, shareMinutes: 1 },
  { name: 'test', shareMinutes: 4, commands: [['npm', 'test']] },
  { name: 'long', shareMinutes: 5, commands: [tests('--long')] },
  {
    name: 'newest-lts',
    shareMinutes: 1,
    usesNewestNode: true,
    commands: [['node', '--version'], tests(...unitsOnNewest)],
  },
  {
    name: 'truth',
    needsRoot: true,
    shareMinutes: 2,
    commands: [['node', 'dist/test/truth/truth.js', 'bind', 'nginx', 'supervisord']],
  },
  {
    name: 'packages',
    needsRoot: true,
    shareMinutes: 3,
    commands: [['node', 'test/packages/run.js', '--brief']],
  },
  { name: 'browser', shareMinutes: 1, commands: [['node', 'test/browser/run.js']] },
  { name: 'fuzz', shareMinutes: 1, commands: [['node', 'dist/test/fuzz/fuzz.js', '--kept']] },
  { name: 'mutations', shareMinutes: 1, commands: [['node', 'scripts/mutate.js', ...gateMutations]] },
  { name: 'counts', shareMinutes: 1, commands: [tests('exhaustive/counts/counts')] },
];

/**
 * Each takes under an hour on an idle machine with two cores.
 * @type {readonly Stage[]}
 */
export const verifyStages = [
  { ...lint, shareMinutes: 2 },
  { name: 'demo', shareMinutes: 1, commands: [npm('demo')] },
  { name: 'test', shareMinutes: 4, commands: [['npm', 'test']] },
  { name: 'long', shareMinutes: 5, commands: [tests('--long')] },
  { name: 'exhaustive', shareMinutes: 15, commands: [tests('--exhaustive')] },
  {
    ...{ name: 'newest-lts', shareMinutes: 20, usesNewestNode: true },
    commands: [['node', '--version'], tests(), tests('--long'), tests('--exhaustive')],
  },
  { name: 'matrix', shareMinutes: 55, commands: [npm('crash')] },
  { name: 'replay', shareMinutes: 40, commands: [npm('crash:replay')] },
  { name: 'kills', shareMinutes: 40, commands: [npm('crash:kills', '--', '', 'all', '10')] },
  { name: 'power', needsRoot: true, shareMinutes: 30, commands: [npm('crash:disk')] },
  { name: 'lives', shareMinutes: 20, commands: [npm('life'), npm('life')] },
  { name: 'soak', shareMinutes: 20, commands: [npm('soak', '--', '--minutes', '15')] },
  {
    name: 'truth',
    needsRoot: true,
    shareMinutes: 20,
    commands: [['node', 'dist/test/truth/truth.js', '--whole']],
  },
  {
    name: 'file-systems',
    needsRoot: true,
    shareMinutes: 20,
    commands: [['node', 'scripts/verify/file-systems.js']],
  },
  {
    name: 'packages',
    needsRoot: true,
    shareMinutes: 15,
    commands: [['node', 'test/packages/run.js', '--whole']],
  },
  {
    name: 'units',
    needsRoot: true,
    shareMinutes: 15,
    commands: [['node', 'test/packages/run.js', '--units']],
  },
  { name: 'images', needsRoot: true, shareMinutes: 15, commands: [['node', 'scripts/packaging/all.js']] },
  { name: 'browser', shareMinutes: 2, commands: [['node', 'test/browser/run.js']] },
  { name: 'fuzz', shareMinutes: 15, commands: [['node', 'dist/test/fuzz/fuzz.js', '--seconds', '600']] },
  { name: 'mutations', shareMinutes: 15, parts: 6, commands: [['node', 'scripts/mutate.js']] },
  { name: 'bench', shareMinutes: 45, commands: [npm('bench', '--', '--no-document')] },
];
