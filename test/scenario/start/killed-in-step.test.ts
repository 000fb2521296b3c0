// The agent is killed in every step of the cycle and of a restore: for each case the sequence of its actions until then, of the
// start after it, and of the next cycle. Release 5 is generation 1; the step belongs to release 6. A line has the visible
// actions: `ask` and `download` at the server, `check`, `canary`, `load` and `probe` with their generation, `link` with the target of
// `current`, `notify` with the generation of a notification, `history` and `status` as written, and the exit code with the
// code of the first problem.
import { type StepCase, stepTable } from '../../kit/host/step-table.js';

const cases: readonly StepCase[] = [
  {
    name: 'Killed in refresh',
    trouble: { at: 'after trust.timestamp:rename', what: 'killed' },
    interrupted: 'ask root, ask timestamp, killed',
    restart: '',
    next: 'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, notify 2, probe 2, history pull activated, status activated, exit 0',
  },
  {
    name: 'Killed in select',
    trouble: { at: 'begin select', what: 'killed' },
    interrupted: 'ask root, ask timestamp, ask snapshot, ask targets, killed',
    restart: '',
    next: 'ask root, ask timestamp, download, check new, canary new, link 2, load 2, notify 2, probe 2, history pull activated, status activated, exit 0',
  },
  {
    name: 'Killed in fetch',
    trouble: { at: 'after fetch.archive:write', what: 'killed' },
    interrupted: 'ask root, ask timestamp, ask snapshot, ask targets, download, killed',
    restart: '',
    next: 'ask root, ask timestamp, download, check new, canary new, link 3, load 3, notify 3, probe 3, history pull activated, status activated, exit 0',
  },
  {
    name: 'Killed in stage',
    trouble: { at: 'after stage.file:write', what: 'killed' },
    interrupted: 'ask root, ask timestamp, ask snapshot, ask targets, download, killed',
    restart: '',
    next: 'ask root, ask timestamp, check new, canary new, link 3, load 3, notify 3, probe 3, history pull activated, status activated, exit 0',
  },
  {
    name: 'Killed in verify',
    trouble: { at: 'begin verify', what: 'killed' },
    interrupted: 'ask root, ask timestamp, ask snapshot, ask targets, download, killed',
    restart: '',
    next: 'ask root, ask timestamp, check new, canary new, link 3, load 3, notify 3, probe 3, history pull activated, status activated, exit 0',
  },
  {
    name: 'Killed in check',
    trouble: { at: 'before hook.remove', what: 'killed' },
    interrupted: 'ask root, ask timestamp, ask snapshot, ask targets, download, check new, killed',
    restart: '',
    next: 'ask root, ask timestamp, check new, canary new, link 3, load 3, notify 3, probe 3, history pull activated, status activated, exit 0',
  },
  {
    name: 'Killed in canary: it has spoken',
    trouble: { at: 'before hook.remove 2', what: 'killed' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, killed',
    restart: '',
    next: 'ask root, ask timestamp, check new, canary new, link 3, load 3, notify 3, probe 3, history pull activated, status activated, exit 0',
  },
  {
    name: 'Killed in canary',
    trouble: { at: 'begin canary', what: 'killed' },
    interrupted: 'ask root, ask timestamp, ask snapshot, ask targets, download, check new, killed',
    restart: '',
    next: 'ask root, ask timestamp, check new, canary new, link 3, load 3, notify 3, probe 3, history pull activated, status activated, exit 0',
  },
  {
    name: 'Killed in flush: nothing is in its place yet',
    trouble: { at: 'before flush.tree', what: 'killed' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, killed',
    restart: '',
    next: 'ask root, ask timestamp, check new, canary new, link 3, load 3, notify 3, probe 3, history pull activated, status activated, exit 0',
  },
  {
    name: 'Killed in flush: a tree is in its place',
    trouble: { at: 'after flush.place:rename', what: 'killed' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, killed',
    restart: '',
    next: 'ask root, ask timestamp, check new, canary new, link 3, load 3, notify 3, probe 3, history pull activated, status activated, exit 0',
  },
  {
    name: 'Killed in swap: the journal is written',
    trouble: { at: 'after swap.journal:rename', what: 'killed' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, killed',
    restart: '',
    next: 'ask root, ask timestamp, download, check new, canary new, link 3, load 3, notify 3, probe 3, history pull activated, status activated, exit 0',
  },
  {
    name: 'Killed in swap: the link has moved',
    trouble: { at: 'after swap.link:rename', what: 'killed' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, killed',
    restart: 'load 2, notify 2, probe 2, recovered activated, history recovery activated',
    next: 'ask root, ask timestamp, status unchanged, exit 0',
  },
  {
    name: 'Killed in load',
    trouble: { at: 'before hook.remove 3', what: 'killed' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, killed',
    restart: 'load 2, notify 2, probe 2, recovered activated, history recovery activated',
    next: 'ask root, ask timestamp, status unchanged, exit 0',
  },
  {
    name: 'Killed in reset',
    trouble: { at: 'notify 2', what: 'killed' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, notify 2, killed',
    restart: 'load 2, notify 2, probe 2, recovered activated, history recovery activated',
    next: 'ask root, ask timestamp, status unchanged, exit 0',
  },
  {
    name: 'Killed in reset: two of three workers have been notified, all at once',
    trouble: { at: 'notify b 2', what: 'killed', workers: 'set' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, notify a 2, notify b 2, killed',
    restart:
      'load 2, notify a 2, notify b 2, notify c 2, probe 2, recovered activated, history recovery activated',
    next: 'ask root, ask timestamp, status unchanged, exit 0',
  },
  {
    name: 'Killed in reset: one of three workers has been notified, one by one',
    trouble: { at: 'notify b 2', what: 'killed', workers: 'rolling' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, notify a 2, notify b 2, killed',
    restart:
      'load 2, notify a 2, notify b 2, notify c 2, probe 2, recovered activated, history recovery activated',
    next: 'ask root, ask timestamp, status unchanged, exit 0',
  },
  {
    name: 'Killed in reset: the worker is being restarted',
    trouble: { at: 'restart 2', what: 'killed', workers: 'restarted' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, restart 2, killed',
    restart: 'load 2, restart 2, probe 2, recovered activated, history recovery activated',
    next: 'ask root, ask timestamp, status unchanged, exit 0',
  },
  {
    name: 'Killed in probe',
    trouble: { at: 'before hook.remove 4', what: 'killed' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, notify 2, probe 2, killed',
    restart: 'load 2, notify 2, probe 2, recovered activated, history recovery activated',
    next: 'ask root, ask timestamp, status unchanged, exit 0',
  },
  {
    name: 'Killed in commit: the journal is there still',
    trouble: { at: 'before commit.journal', what: 'killed' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, notify 2, probe 2, killed',
    restart: 'history recovery activated',
    next: 'ask root, ask timestamp, status unchanged, exit 0',
  },
  {
    name: 'Killed in commit: the journal is cleared',
    trouble: { at: 'after commit.journal', what: 'killed' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, notify 2, probe 2, killed',
    restart: 'history recovery activated',
    next: 'ask root, ask timestamp, status unchanged, exit 0',
  },
  {
    name: 'Killed in restore: the link is to go back',
    trouble: { at: 'before swap.link:rename 2', what: 'killed', isRefusing: true },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, notify 2, killed',
    restart: 'link 1, load 1, notify 1, probe 1, recovered failed, history recovery failed',
    next: 'ask root, ask timestamp, history pull rejected, status rejected, exit 3 REMEMBERED_REFUSAL',
  },
  {
    name: 'Killed in restore: the link is back',
    trouble: { at: 'after swap.link:rename 2', what: 'killed', isRefusing: true },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, notify 2, link 1, killed',
    restart: 'link 1, load 1, notify 1, probe 1, recovered failed, history recovery failed',
    next: 'ask root, ask timestamp, history pull rejected, status rejected, exit 3 REMEMBERED_REFUSAL',
  },
  {
    name: 'Killed in restore: a worker that has died is being restarted',
    trouble: { at: 'restart 1', what: 'killed', workers: 'mortal' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, notify 2, link 1, load 1, notify 1, restart 1, killed',
    restart: 'link 1, load 1, notify 1, restart 1, probe 1, recovered failed, history recovery failed',
    next: 'ask root, ask timestamp, history pull rejected, status rejected, exit 3 REMEMBERED_REFUSAL',
  },
  {
    name: 'Killed in restore: the second of three workers has refused, the first is notified again',
    trouble: { at: 'notify a 1', what: 'killed', isRefusing: true, workers: 'rolling' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, notify a 2, notify b 2, link 1, load 1, notify a 1, killed',
    restart:
      'link 1, load 1, notify a 1, notify b 1, notify c 1, probe 1, recovered failed, history recovery failed',
    next: 'ask root, ask timestamp, history pull rejected, status rejected, exit 3 REMEMBERED_REFUSAL',
  },
];

stepTable('Killed in', cases);
