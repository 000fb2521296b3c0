// Every step of the cycle fails, by the network, the disk, the release, a worker or Writ itself: for each case the sequence of
// actions of that cycle, of a start after it, and of the next cycle, in which only faults of the release remain. The
// notation is that of killed-in-step. Release 5 is generation 1; the step belongs to release 6.
import { type StepCase, stepTable } from '../../kit/host/step-table.js';

const cases: readonly StepCase[] = [
  {
    name: 'Error in refresh: the server is away',
    trouble: { server: { file: 'timestamp', does: 'is away' } },
    interrupted: 'ask root, ask timestamp, history pull failed, status failed, exit 1 SERVER_UNREACHABLE',
    restart: '',
    next: 'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, notify 2, probe 2, history pull activated, status activated, exit 0',
  },
  {
    name: 'Error in refresh: the disk is full',
    trouble: { at: 'before trust.snapshot:write', what: 'ENOSPC' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, notify 2, probe 2, history pull activated, status activated, exit 0',
    restart: '',
    next: 'ask root, ask timestamp, status unchanged, exit 0',
  },
  {
    name: 'Error in select: the serial is older',
    trouble: { release: 'an older serial' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, history pull rejected, status rejected, exit 3 SERIAL_ROLLBACK',
    restart: '',
    next: 'ask root, ask timestamp, history pull rejected, exit 3 SERIAL_ROLLBACK',
  },
  {
    name: 'Error in fetch: the connection is cut off',
    trouble: { server: { file: 'targets/', does: 'cuts off' } },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, download, download, download, history pull failed, status failed, exit 1 SERVER_UNREACHABLE',
    restart: '',
    next: 'ask root, ask timestamp, download, check new, canary new, link 3, load 3, notify 3, probe 3, history pull activated, status activated, exit 0',
  },
  {
    name: 'Error in stage: the disk is full',
    trouble: { at: 'before stage.file:write', what: 'ENOSPC' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, history pull failed, status failed, exit 1 DISK_FULL',
    restart: '',
    next: 'ask root, ask timestamp, download, check new, canary new, link 3, load 3, notify 3, probe 3, history pull activated, status activated, exit 0',
  },
  {
    name: 'Error in verify: the manifest is not the signed one',
    trouble: { release: 'another manifest' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, history pull rejected, status rejected, exit 3 MANIFEST_DIGEST',
    restart: '',
    next: 'ask root, ask timestamp, history pull rejected, exit 3 REMEMBERED_REFUSAL',
  },
  {
    name: 'Error in check: a refusal',
    trouble: { exitCodes: { check: 1 } },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, history pull rejected, status rejected, exit 3 CHECK_FAILED',
    restart: '',
    next: 'ask root, ask timestamp, history pull rejected, exit 3 REMEMBERED_REFUSAL',
  },
  {
    name: 'Error in check: it is no program',
    trouble: { exitCodes: { check: 127 } },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, history pull failed, status failed, exit 1 CHECK_BROKEN',
    restart: '',
    next: 'ask root, ask timestamp, check new, history pull failed, exit 1 CHECK_BROKEN',
  },
  {
    name: 'Error in canary: a bug of ours',
    trouble: { at: 'begin canary', what: 'a bug' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, history pull failed, status failed, exit 1 INTERNAL',
    restart: '',
    next: 'ask root, ask timestamp, check new, canary new, link 3, load 3, notify 3, probe 3, history pull activated, status activated, exit 0',
  },
  {
    name: 'Error in canary: a refusal',
    trouble: { exitCodes: { canary: 1 } },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, history pull rejected, status rejected, exit 3 CANARY_FAILED',
    restart: '',
    next: 'ask root, ask timestamp, history pull rejected, exit 3 REMEMBERED_REFUSAL',
  },
  {
    name: 'Error in canary: it is no program',
    trouble: { exitCodes: { canary: 127 } },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, history pull failed, status failed, exit 1 CANARY_BROKEN',
    restart: '',
    next: 'ask root, ask timestamp, check new, canary new, history pull failed, exit 1 CANARY_BROKEN',
  },
  {
    name: 'Error in flush: the disk is broken',
    trouble: { at: 'before flush.tree', what: 'EIO' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, history pull failed, status failed, exit 1 DISK_FAILED',
    restart: '',
    next: 'ask root, ask timestamp, download, check new, canary new, link 3, load 3, notify 3, probe 3, history pull activated, status activated, exit 0',
  },
  {
    name: 'Error in swap: no room for the journal',
    trouble: { at: 'before swap.journal:write', what: 'ENOSPC' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 1, load 1, notify 1, probe 1, history pull failed, status failed, exit 1 DISK_FULL',
    restart: '',
    next: 'ask root, ask timestamp, download, check new, canary new, link 3, load 3, notify 3, probe 3, history pull activated, status activated, exit 0',
  },
  {
    name: 'Error in swap: the link cannot be flushed',
    trouble: { at: 'after swap.link:flush-directory', what: 'EIO' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, link 1, load 1, notify 1, probe 1, history pull failed, status failed, exit 1 DISK_FAILED',
    restart: '',
    next: 'ask root, ask timestamp, download, check new, canary new, link 3, load 3, notify 3, probe 3, history pull activated, status activated, exit 0',
  },
  {
    name: 'Error in load: a refusal',
    trouble: { exitCodes: { load: 1 } },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, link 1, load 1, notify 1, probe 1, history pull rolled-back, status rolled-back, exit 5 LOADER_FAILED',
    restart: '',
    next: 'ask root, ask timestamp, history pull rejected, status rejected, exit 3 REMEMBERED_REFUSAL',
  },
  {
    name: 'Error in load: it is no program',
    trouble: { exitCodes: { load: 127 } },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, link 1, load 1, notify 1, probe 1, history pull failed, status failed, exit 1 LOADER_BROKEN',
    restart: '',
    next: 'ask root, ask timestamp, history pull failed, exit 1 LOADER_BROKEN',
  },
  {
    name: 'Error in reset: the worker refuses',
    trouble: { isRefusing: true },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, notify 2, link 1, load 1, notify 1, probe 1, history pull rolled-back, status rolled-back, exit 5 WORKER_REFUSED',
    restart: '',
    next: 'ask root, ask timestamp, history pull rejected, status rejected, exit 3 REMEMBERED_REFUSAL',
  },
  {
    name: 'Error in reset: the second of three workers refuses, notified all at once',
    trouble: { isRefusing: true, workers: 'set' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, notify a 2, notify b 2, notify c 2, link 1, load 1, notify a 1, notify b 1, notify c 1, probe 1, history pull rolled-back, status rolled-back, exit 5 WORKER_REFUSED',
    restart: '',
    next: 'ask root, ask timestamp, history pull rejected, status rejected, exit 3 REMEMBERED_REFUSAL',
  },
  {
    name: 'Error in reset: the second of three workers refuses, notified one by one',
    trouble: { isRefusing: true, workers: 'rolling' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, notify a 2, notify b 2, link 1, load 1, notify a 1, notify b 1, probe 1, history pull rolled-back, status rolled-back, exit 5 WORKER_REFUSED',
    restart: '',
    next: 'ask root, ask timestamp, history pull rejected, status rejected, exit 3 REMEMBERED_REFUSAL',
  },
  {
    name: 'Error in reset: the worker dies of it',
    trouble: { workers: 'mortal' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, notify 2, link 1, load 1, notify 1, restart 1, probe 1, history pull rolled-back, status rolled-back, exit 5 WORKER_DIED',
    restart: '',
    next: 'ask root, ask timestamp, history pull rejected, status rejected, exit 3 REMEMBERED_REFUSAL',
  },
  {
    name: 'Error in probe: a restarted worker is refused',
    trouble: { exitCodes: { probe: 1 }, workers: 'restarted' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, restart 2, probe 2, link 1, load 1, restart 1, probe 1, history pull rolled-back, status rolled-back, exit 5 PROBE_FAILED',
    restart: '',
    next: 'ask root, ask timestamp, history pull rejected, status rejected, exit 3 REMEMBERED_REFUSAL',
  },
  {
    name: 'Error in probe: a refusal',
    trouble: { exitCodes: { probe: 1 } },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, notify 2, probe 2, link 1, load 1, notify 1, probe 1, history pull rolled-back, status rolled-back, exit 5 PROBE_FAILED',
    restart: '',
    next: 'ask root, ask timestamp, history pull rejected, status rejected, exit 3 REMEMBERED_REFUSAL',
  },
  {
    name: 'Error in probe: it is no program',
    trouble: { exitCodes: { probe: 127 } },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, notify 2, probe 2, link 1, load 1, notify 1, probe 1, history pull failed, status failed, exit 1 PROBE_BROKEN',
    restart: '',
    next: 'ask root, ask timestamp, history pull failed, exit 1 PROBE_BROKEN',
  },
  {
    name: 'Error in commit: the disk is broken',
    trouble: { at: 'before commit.journal', what: 'EIO' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, notify 2, probe 2, history pull failed, status failed, exit 1 DISK_FAILED',
    restart: '',
    next: 'ask root, ask timestamp, status unchanged, exit 0',
  },
  {
    name: 'Error in restore: the loader refuses the generation before alike',
    trouble: { exitCodes: { load: 1 }, isAlways: true },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, link 1, load 1, notify 1, probe 1, history pull rolled-back, status rolled-back, exit 5 REFUSAL_REPEATED',
    restart: 'load 1',
    next: 'ask root, ask timestamp, history pull degraded, status degraded, exit 4 REFUSAL_REPEATED',
  },
  {
    name: 'Error in restore: the probe refuses again',
    trouble: { exitCodes: { probe: 1 }, isAlways: true },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, notify 2, probe 2, link 1, load 1, notify 1, probe 1, history pull blocked, status blocked, exit 6 ACTIVATION_BLOCKED',
    restart: 'link 1, load 1, notify 1, probe 1, recovered blocked, history recovery blocked',
    next: 'ask root, ask timestamp, probe 1, notify 1, probe 1, history pull blocked, status blocked, exit 6 ACTIVATION_BLOCKED',
  },
  {
    name: 'Error in restore: the refusal cannot be noted',
    trouble: { isRefusing: true, at: 'before refusals:write', what: 'EIO' },
    interrupted:
      'ask root, ask timestamp, ask snapshot, ask targets, download, check new, canary new, link 2, load 2, notify 2, link 1, load 1, notify 1, probe 1, history pull rolled-back, status rolled-back, exit 5 WORKER_REFUSED',
    restart: '',
    next: 'ask root, ask timestamp, history pull rejected, status rejected, exit 3 REMEMBERED_REFUSAL',
  },
];

stepTable('Error in', cases);
