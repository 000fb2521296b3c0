// The agent of a life, in this process: the composition of the daemon, with this clock, this disk and a log that is judged as
// it is written. Owns one agent from its start to its end; a kill leaves the disk as it is from one operation on.
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
import type { LifeClock } from './life-clock.js';
import { type LifeDisk, lifeDisk } from './life-disk.js';

export interface LifeAgent {
  readonly disk: LifeDisk;
  readonly stop: AbortController;
  /** Whether it polls and answers; it may have failed to start. */
  state(): 'starting' | 'runs' | 'over';
  /** Resolves when it is over, with what kept it from starting or ended it. */
  readonly ended: Promise<unknown>;
  /** Jobs that have begun and not ended. */
  jobs(): number;
  reload(): void;
  ask(request: ControlRequest): Promise<ControlAnswer[]>;
}

/** What an agent tells its life. */
export interface LifeEars {
  onLog(line: string): void;
  onEnd(end: CycleEnd): void;
}

export interface AgentPlaces {
  readonly paths: HostPaths;
  readonly configPath: string;
  readonly metrics: string;
}

export function agentPlaces(dir: TempDir): AgentPlaces {
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
  /** Changed by a reload. */
  readonly pollEvery?: string;
}

/** Writes the configuration: everything that an agent does by itself, often enough to be seen. */
export function configure(
  { paths, configPath, metrics }: AgentPlaces,
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

export interface StartOptions extends LifeEars {
  readonly places: AgentPlaces;
  readonly clock: LifeClock;
  readonly random: Seeded;
}

export function startLifeAgent({ places, clock, random, onLog, onEnd }: StartOptions): LifeAgent {
  const disk = lifeDisk(random);
  const stop = new AbortController();
  let state: ReturnType<LifeAgent['state']> = 'starting';
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
    ask: (request) => askLife(places.paths, request),
  };
}

async function askLife(paths: HostPaths, request: ControlRequest): Promise<ControlAnswer[]> {
  const answers: ControlAnswer[] = [];
  const client = {
    ...{ socketPath: paths.socket, state: paths.state, version: '0.1.0', clock: systemClock, request },
    ...{ silenceMs: 30_000, commandLine: 'writ', onOtherVersion: () => undefined },
    signal: new AbortController().signal,
  };
  for await (const answer of askAgent(client)) answers.push(answer);
  return answers;
}
