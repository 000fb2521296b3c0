// The table of drivers for the common driver tests. Each configuration of a driver is a row, with the kind of the driver's answer
// for a worker in each state.
import { mkdirSync } from 'node:fs';
import type { StandRow } from './driver-stand.js';
import { startFakeMaster } from './fake-master.js';
import { startFakeWorker } from './fake-worker.js';
import { commandStand, nativeStand, pidFileStand, systemdStand } from './process-stands.js';
import { httpStand, kresdStand, lineStand, supervisordStand, urlStand } from './socket-stands.js';

const early = {
  works: 'notified',
  refuses: 'refused',
  hangs: 'unreachable',
  dead: 'unreachable',
  deadIs: 'listed',
} as const;
const vouched = { ...early, works: 'confirmed' } as const;
/** A signal has no answer, so that each process that received it counts as notified. */
const silent = { ...early, refuses: 'notified', hangs: 'notified' } as const;

export const standRows: readonly StandRow[] = [
  { name: 'kresd, with a stand-in for 5.6', open: kresdStand('5.6', 'policy_reset()'), ...vouched },
  {
    name: 'kresd, with a stand-in for 6',
    open: kresdStand('6.4', "require('ffi').C.kr_rules_reset()"),
    ...vouched,
  },
  { name: 'line', open: lineStand({ expect: 'ok' }), ...early },
  { name: 'line that is vouched for', open: lineStand({ expect: 'ok', confirms: true }), ...vouched },
  { name: 'http', open: httpStand({}), ...early },
  { name: 'http that is vouched for', open: httpStand({ confirms: true }), ...vouched },
  { name: 'http by URLs', open: urlStand, ...early },
  {
    name: 'supervisord, with a stand-in',
    open: (dir) => supervisordStand(dir, { signal: 'HUP' }),
    ...silent,
    // In this state supervisord itself does not answer.
    hangs: 'unreachable',
    absent: 'listed',
  },
  {
    name: 'supervisord that restarts, with a stand-in',
    open: (dir) => supervisordStand(dir, {}),
    ...early,
    dead: 'notified',
    absent: 'listed',
  },
  { name: 'systemd, with a stub of systemctl', open: systemdStand, ...early },
  {
    name: 'systemd that restarts, with a stub of systemctl',
    open: (dir) => systemdStand(dir, { action: 'restart' }),
    ...early,
  },
  {
    name: 'systemd that is vouched for, with a stub of systemctl',
    open: (dir) => systemdStand(dir, { confirms: true }),
    ...vouched,
  },
  { name: 'run', open: commandStand, ...early },
  { name: 'run that is vouched for', open: (dir) => commandStand(dir, { confirms: true }), ...vouched },
  {
    name: 'signal',
    open: async (dir) =>
      pidFileStand(dir, {}, async (name, state) => {
        const { pid, kill } = await startFakeWorker(dir.join(name));
        if (state === 'hangs') process.kill(pid, 'SIGSTOP');
        return { pid, end: kill };
      }),
    ...silent,
  },
  {
    name: 'signal with proof',
    open: async (dir) =>
      pidFileStand(dir, { proof: 'children' }, async (name, state) => {
        const place = dir.join(`master-${name}`);
        mkdirSync(place, { recursive: true });
        const master = await startFakeMaster(place, state === 'works' ? 'replaces' : 'keeps');
        if (state === 'hangs') process.kill(master.pid, 'SIGSTOP');
        return { pid: master.pid, end: async () => master[Symbol.asyncDispose]() };
      }),
    ...vouched,
    // The driver cannot distinguish a slow master from an unwilling one.
    refuses: 'unreachable',
  },
  { name: 'native', open: nativeStand, ...vouched, deadIs: 'gone' },
];
