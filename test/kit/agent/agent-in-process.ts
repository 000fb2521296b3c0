// A complete agent in this process with a signed repository on disk, virtual time and a readable log. The test has the
// assertions.
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { startAgent } from '../../../src/agent/agent.js';
import type { InstallSource } from '../../../src/agent/identity/install-id.js';
import { type HostPaths, hostPaths } from '../../../src/agent/state/paths.js';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import type {
  ControlAnswer,
  ControlRequest,
  StatusReport,
} from '../../../src/core/protocol/control-protocol.js';
import { askAgent } from '../../../src/platform/net/control-client.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { type LogLines, logLines } from '../assert/log-lines.js';
import { until } from '../assert/until.js';
import { type FakeClock, type FakeClockOptions, fakeClock } from '../clock/fake-clock.js';
import type { TempDir } from '../disk/temp-dir.js';
import { type SampleRepository, sampleRepository } from '../repository/sample-repository.js';
import { fixedInstall } from './fixed-install.js';

export interface AgentSite {
  readonly dir: TempDir;
  readonly clock: FakeClock;
  readonly repository: SampleRepository;
  readonly paths: HostPaths;
  readonly configPath: string;
  /** Writes the configuration: the defaults of the site, overridden by these keys. */
  configure(keys?: Readonly<Record<string, unknown>>): void;
  /** @param install identity of another machine */
  start(install?: InstallSource): AgentInProcess;
}

export interface AgentInProcess extends AsyncDisposable {
  readonly log: LogLines;
  readonly states: readonly string[];
  /** Resolves when the agent polls and answers. */
  readonly ready: Promise<void>;
  /** Resolves when the agent has ended; rejects with the error that prevented its start. */
  readonly ended: Promise<void>;
  /** Ends the agent as SIGTERM does. */
  stop(): void;
  /** Reloads the configuration as SIGHUP does. */
  reload(): void;
  /** @param signal ends the wait, as Ctrl-C does */
  ask(request: ControlRequest, signal?: AbortSignal): Promise<ControlAnswer[]>;
  pull(force?: 'force'): Promise<CycleResult>;
  status(): Promise<StatusReport>;
  /** Results of the cycles that have ended, oldest first. */
  cycles(): readonly CycleResult[];
  /** Resolves when this many cycles have ended. */
  hasEnded(count: number): Promise<void>;
}

/**
 * @param keys of the configuration, over its defaults
 * @example const site = agentSite(dir); await using agent = site.start(); await agent.ready;
 */
export function agentSite(
  dir: TempDir,
  keys: Readonly<Record<string, unknown>> = {},
  options: FakeClockOptions = {},
): AgentSite {
  const clock = fakeClock(options);
  const repository = sampleRepository(dir, { clock });
  const places = { state: dir.join('state'), run: dir.join('run') };
  const configPath = dir.join('agent.yaml');
  const configure = (more: Readonly<Record<string, unknown>> = {}): void => {
    const defaults = {
      repository: repository.url,
      root: repository.rootPath,
      ...places,
      host: { id: 'test' },
      sandbox: 'off',
      // Bake times are off by default, because their rounds every 2 s would wake the clock of each other test.
      bundles: [{ name: 'dns-edge', bake: { for: 0 } }],
    };
    writeFileSync(configPath, JSON.stringify({ ...defaults, ...keys, ...more }));
  };
  configure();
  mkdirSync(places.run);
  const policy = dir.join('state', 'policy');
  const paths = hostPaths({ ...places, policy, socket: dir.join('run', 'agent.sock') });
  return {
    dir,
    clock,
    repository,
    paths,
    configPath,
    configure,
    start: (install = fixedInstall) => start(configPath, clock, paths, install),
  };
}

function start(
  configPath: string,
  clock: FakeClock,
  paths: HostPaths,
  install: InstallSource,
): AgentInProcess {
  const log = logLines();
  const states: string[] = [];
  const stop = new AbortController();
  let reload = (): void => undefined;
  const ended = startAgent({
    configPath,
    version: '0.1.0',
    clock,
    log: log.log,
    random01: () => 0.5,
    install,
    stop: stop.signal,
    onReload: (listener) => {
      reload = listener;
      return () => {
        reload = () => undefined;
      };
    },
    observers: [{ onState: (state) => void states.push(state) }],
  });
  let isOver = false;
  ended
    .catch(() => undefined)
    .finally(() => {
      isOver = true;
    });
  const ready = until(() => states.includes('run') || isOver).then(() => (isOver ? ended : undefined));
  // A test that expects a failed start awaits only `ended`.
  ready.catch(() => undefined);
  const ask = async (
    request: ControlRequest,
    signal = new AbortController().signal,
  ): Promise<ControlAnswer[]> => {
    const answers: ControlAnswer[] = [];
    const client = {
      socketPath: paths.socket,
      state: paths.state,
      version: '0.1.0',
      clock: systemClock,
      silenceMs: 20_000,
      commandLine: 'writ',
      onOtherVersion: () => undefined,
      signal,
    };
    for await (const answer of askAgent({ ...client, request })) answers.push(answer);
    return answers;
  };
  const cycles = (): CycleResult[] =>
    log.named('cycle ended').map((line) => line['result'] as unknown as CycleResult);
  return {
    log,
    states,
    ready,
    ended,
    stop: () => stop.abort(),
    reload: () => reload(),
    ask,
    pull: async (force) => {
      const answers = await ask({ type: 'pull', force: force === 'force', by: 'anna' });
      return answers.at(-1) as CycleResult;
    },
    status: async () => (await ask({ type: 'status' })).at(-1) as StatusReport,
    cycles,
    hasEnded: (count) => until(() => cycles().length >= count),
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await ended.catch(() => undefined);
    },
  };
}

/** A check that waits for a file, so that a test can act while the cycle is in it. */
export interface Gate {
  /** For the configuration of a bundle. */
  readonly check: Readonly<Record<string, unknown>>;
  /** Resolves when a check waits. */
  reached(): Promise<void>;
  open(): void;
  /** Makes the next check wait again. */
  close(): void;
}

/** @example const gate = gateIn(dir); const site = agentSite(dir, { bundles: [{ name, checks: [gate.check] }] }); */
export function gateIn(dir: TempDir): Gate {
  const [waits, isOpen] = [dir.join('check-waits'), dir.join('check-may-end')];
  const script = `touch ${waits}; while ! test -e ${isOpen}; do sleep 0.02; done`;
  return {
    check: { name: 'gate', run: ['sh', '-c', script], timeout: '60s' },
    reached: () => until(() => existsSync(waits)),
    open: () => writeFileSync(isOpen, ''),
    close: () => {
      for (const path of [isOpen, waits]) rmSync(path, { force: true });
    },
  };
}
