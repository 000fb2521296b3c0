// The agent of the simulated host, in this process: the composition of the daemon with a virtual clock, a faulty disk and a
// log that is checked line by line. Owns one agent from its start to its end. A kill blocks each change to the disk from one
// operation on.
import { writeFileSync } from 'node:fs';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import { startAgent } from '../../../src/agent/agent.js';
import type { CycleEnd } from '../../../src/agent/job/cycle-result.js';
import { type HostPaths, hostPaths } from '../../../src/agent/state/paths.js';
import type { ControlAnswer, ControlRequest } from '../../../src/core/protocol/control-protocol.js';
import { askAgent } from '../../../src/platform/net/control-client.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { fixedInstall } from '../../kit/agent/fixed-install.js';
import type { Seeded } from '../../kit/assert/seeded.js';
import type { TempDir } from '../../kit/disk/temp-dir.js';
import { type FaultyDisk, faultyDisk } from './faulty-disk.js';
import type { VirtualClock } from './virtual-clock.js';

export interface SimulatedAgent {
  readonly disk: FaultyDisk;
  readonly stop: AbortController;
  /** `runs`: the agent polls and answers requests. `over`: it ended, or its start failed. */
  state(): 'starting' | 'runs' | 'over';
  /** Resolves when the agent ends: with the error that failed its start or ended it, or with undefined. */
  readonly ended: Promise<unknown>;
  /** The number of jobs that have begun and not ended. */
  jobs(): number;
  reload(): void;
  ask(request: ControlRequest): Promise<ControlAnswer[]>;
}

/** Listeners for the log lines and the ended jobs of an agent. */
export interface AgentListeners {
  onLog(line: string): void;
  onEnd(end: CycleEnd): void;
}

export interface AgentPaths {
  readonly paths: HostPaths;
  readonly configPath: string;
  readonly metrics: string;
}

export function agentPaths(dir: TempDir): AgentPaths {
  const places = { state: dir.join('state'), run: dir.join('run') };
  const paths = hostPaths({
    ...places,
    policy: dir.join('state', 'policy'),
    socket: dir.join('run', 'agent.sock'),
  });
  return { paths, configPath: dir.join('agent.yaml'), metrics: dir.join('run', 'metrics.sock') };
}

export interface ConfigureOptions {
  readonly url: string;
  readonly root: string;
  /** The poll interval as the configuration writes it: events change it before a reload. */
  readonly pollEvery?: string;
}

/** Writes a configuration with every periodic task of the agent, at intervals short enough for the simulation. */
export function configure(
  { paths, configPath, metrics }: AgentPaths,
  { url, root, pollEvery = '1m' }: ConfigureOptions,
): void {
  const check = { name: 'sane', run: ['sh', '-c', 'test ! -e "$1/refused"', 'sh', '{bundle}'] };
  const keys = {
    ...{ repository: url, root, state: paths.state, run: paths.run, host: { id: 'life' }, sandbox: 'off' },
    poll: { every: pollEvery },
    bundles: [{ name: 'access' }, { name: 'dns-edge', checks: [check] }],
    workers: [
      {
        ...{ name: 'app', uses: ['access', 'dns-edge'], confirm: 'warn' },
        reset: { native: 'app', min: 0, timeout: '2s', retry: 0 },
        probe: { run: ['true'], every: '30m' },
      },
    ],
    ...{ keep: { generations: 3, grace: '10m' }, refusals: { retry: '1h' }, scrub: { every: '1h' } },
    ...{ staleAfter: '30m', maxStale: '6h', onStale: { run: ['true'] }, onFresh: { run: ['true'] } },
    ...{ metrics: { socket: metrics }, events: { file: `${paths.run}/events.jsonl` } },
    limits: {
      timeouts: { connect: '1s', idle: '1s', metadata: '2s', refresh: '5s', archive: '5s' },
    },
  };
  writeFileSync(configPath, JSON.stringify(keys));
}

export interface StartOptions extends AgentListeners {
  readonly places: AgentPaths;
  readonly clock: VirtualClock;
  readonly random: Seeded;
}

export function startSimulatedAgent({ places, clock, random, onLog, onEnd }: StartOptions): SimulatedAgent {
  const disk = faultyDisk(random);
  const stop = new AbortController();
  let state: ReturnType<SimulatedAgent['state']> = 'starting';
  let jobs = 0;
  let reload = (): void => undefined;
  const stream = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      if (!disk.isDead()) onLog(chunk.toString('utf8'));
      done();
    },
  });
  const ended = startAgent({
    ...{ configPath: places.configPath, version: '0.1.0', clock, stop: stop.signal, observer: disk },
    log: pino({ level: 'warn' }, stream),
    random01: () => random.int(1000) / 1000,
    install: fixedInstall,
    onReload: (listener) => {
      reload = listener;
      return () => {
        reload = () => undefined;
      };
    },
    observers: [
      {
        onState: (now) => {
          if (now === 'run') state = 'runs';
        },
        onWork: ({ kind }) => {
          if (kind !== 'step') jobs += kind === 'began' ? 1 : -1;
        },
        onCycle: (end) => {
          if (!disk.isDead()) onEnd(end);
        },
      },
    ],
  }).then(
    () => undefined,
    (error: unknown) => error,
  );
  void ended.then(() => {
    state = 'over';
    jobs = 0;
  });
  return {
    ...{ disk, stop, ended },
    state: () => state,
    jobs: () => jobs,
    reload: () => reload(),
    ask: (request) => askOverSocket(places.paths, request),
  };
}

async function askOverSocket(paths: HostPaths, request: ControlRequest): Promise<ControlAnswer[]> {
  const answers: ControlAnswer[] = [];
  const client = {
    ...{ socketPath: paths.socket, state: paths.state, version: '0.1.0', clock: systemClock, request },
    ...{ silenceMs: 30_000, commandLine: 'writ', onOtherVersion: () => undefined },
    signal: new AbortController().signal,
  };
  for await (const answer of askAgent(client)) answers.push(answer);
  return answers;
}
