// The running agent: recovers the host, then polls and serves requests until the stop request. Controls the order of these steps and
// the states init, run, shutdown and stop; other modules decide everything else.
import { isDeepStrictEqual } from 'node:util';
import type { CycleResult } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { isWritError, toWritError, type WritError } from '../../core/errors.js';
import type { AgentState, GenerationUserStatus, StatusReport } from '../../core/status/status.js';
import { lossesOfLog } from '../../platform/telemetry/log.js';
import { silentLog } from '../../platform/telemetry/silent-log.js';
import { changeOfFile, loadForAgent } from '../config/load-config.js';
import { openAgentSockets } from '../control/agent-sockets.js';
import type { Caller } from '../control/control-socket.js';
import type { CycleOrigin } from '../control/cycle-and-exit.js';
import { pullUnlessStopping, requirePresent } from '../cycle/cycle-runner.js';
import { forgetRetryAfter } from '../cycle/refresh-trust.js';
import { activeGenerationNumber } from '../generations/generations.js';
import { openInstallId } from '../identity/install-id.js';
import type { ScrubResult } from '../integrity/scrub.js';
import { type CycleEnd, isOfOrder } from '../job/cycle-result.js';
import type { Exclusive } from '../job/exclusive.js';
import { newCycleId } from '../job/progress.js';
import { createRecorder } from '../job/record.js';
import { beatUntilStopped } from '../report/status-beat.js';
import { writeStatusFile } from '../report/status-file.js';
import { statusReport } from '../report/status-report.js';
import { announceActiveGeneration, closeHost, replaceHost } from '../startup/open-host.js';
import { startHost } from '../startup/start-host.js';
import type { Host } from '../state/host.js';
import { type AgentCalls, type AgentOptions, type AgentParts, composeAgent } from './compose.js';
import { requireState } from './vanished-state.js';

/** One agent, from its recovery to its end. `runAgent` creates it and holds the lock. */
export class RunningAgent {
  readonly #options: AgentOptions;
  readonly #parts: AgentParts;
  readonly #recorder = createRecorder();
  #host: Host;
  /** The digest of the configuration file at its last read. */
  #digest: string;
  #state: AgentState = 'init';
  #last: CycleResult | undefined;
  #waitingReload: { readonly askers: ReloadCaller[]; readonly done: Promise<void> } | undefined;
  readonly #problems: AgentCalls['problems'] = new Map();

  constructor(options: AgentOptions, { host, digest }: { readonly host: Host; readonly digest: string }) {
    this.#options = options;
    this.#host = host;
    this.#digest = digest;
    this.#parts = composeAgent(options, {
      host: () => this.#host,
      installId: openInstallId(host, options.install),
      status: (held) => this.#status(held),
      publishStatus: () => this.#publishStatus(),
      note: (end, asked) => this.#note(end, asked),
      recordScrub: (scan) => this.#recordScrub(scan),
      problems: this.#problems,
      reload: (caller, follow) => this.#reload(caller, follow),
    });
  }

  async run(): Promise<void> {
    const { version, onReload } = this.#options;
    const { runner, poller, scrubber, prober, bakeWatcher, fleet, reconcileUntilStopped, handlers } =
      this.#parts;
    // Listen from the beginning, because a SIGHUP during the recovery would end the process otherwise.
    const pull = () => pullUnlessStopping(runner, 'reload');
    const stopReloads = onReload(() => void this.#reload({}, pull).catch(() => undefined));
    try {
      await runner.exclusive(() => this.#recover());
      const sockets = await openAgentSockets(this.#host, {
        ...{ version, handlers },
        lastStatus: () => this.#status(),
      });
      this.#enter('run');
      try {
        await Promise.all([
          poller.run(runner),
          reconcileUntilStopped(),
          scrubber.run(),
          prober.run(),
          bakeWatcher.run(),
          fleet.run(),
          this.#beat(),
        ]);
      } finally {
        this.#enter('shutdown');
        await runner.idle();
        // The last jobs have ended: send their responses before the sockets close.
        await this.#host.clock.sleep(0);
        await sockets.close();
        this.#enter('stop');
        await fleet.sendFinalReport();
      }
    } finally {
      stopReloads();
      await runner.idle();
      await closeHost(this.#host);
    }
  }

  #enter(state: AgentState): void {
    this.#state = state;
    this.#options.log.info({ state }, 'state');
    this.#publishStatus();
    this.#parts.observers.onState(state);
  }

  async #recover(): Promise<void> {
    const host = this.#host;
    const starting = startHost(host, { cycle: newCycleId(), signal: this.#options.stop });
    // Not earlier: the start reads the end of the previous agent from the status file that this state replaces.
    this.#enter('init');
    const { recovered, repaired, restored, damage, notLoaded } = await starting;
    if (recovered !== undefined) this.#note(recovered, {});
    if (restored !== undefined) this.#note(restored, { by: 'writ', reason: 'BAKE_FAILED' });
    this.#last = repaired?.result ?? this.#last;
    this.#problems.set('damage', damage && problemOf(damage)).set('loader', notLoaded);
    host.log.info({ generation: activeGenerationNumber(host.paths) }, 'host recovered and verified');
    announceActiveGeneration(host);
  }

  /** Records every end of a cycle or a rollback in log, history and status. */
  #note(end: CycleEnd, asked: CycleOrigin): void {
    if (!isOfOrder(end.result)) this.#last = end.result;
    if (end.result.changed) this.#problems.delete('damage');
    this.#recorder.record(this.#host, end, asked);
    // Run the probes soon, also after a restore.
    if (end.result.changed || end.result.outcome === 'rolled-back') this.#parts.bakeBegan();
    this.#parts.observers.onCycle(end);
    this.#publishStatus();
  }

  #recordScrub({ repair }: ScrubResult): void {
    this.#problems.delete('damage');
    if (repair !== undefined) {
      this.#last = repair.result;
      this.#parts.observers.onCycle(repair);
    }
    this.#publishStatus();
  }

  #status(held: readonly GenerationUserStatus[] = this.#parts.collector.report().held): StatusReport {
    const { contact, collector, poller, prober, downloads, fleet } = this.#parts;
    const { version, leftOut, configPath, log } = this.#options;
    // A failed reload is already reported with more details.
    const changed = this.#problems.has('reload') ? undefined : changeOfFile(configPath, this.#digest);
    return statusReport(this.#host, {
      version,
      state: this.#state,
      contact: contact.read(),
      held,
      fleet: fleet.fleetStatus(),
      logLosses: lossesOfLog(log),
      problems: [
        ...[...(leftOut ?? []), ...this.#problems.values(), ...collector.report().problems],
        fleet.problem(),
        changed && problemOf(changed),
      ],
      last: this.#last,
      provenAtMs: prober.provenAtMs(),
      nextPollAtMs: poller.nextAtMs(),
      downloading: downloads.now(),
    });
  }

  #beat(): Promise<void> {
    const { clock, stop } = this.#options;
    return beatUntilStopped({
      clock,
      stop,
      write: () => writeStatusFile(this.#host, this.#status(), 'beat'),
    });
  }

  #publishStatus(): void {
    const report = this.#status();
    writeStatusFile(this.#host, report);
    this.#parts.observers.onStatus(report);
  }

  /**
   * Reloads the configuration. At most one reload waits and serves all callers that arrive until it runs, so that many signals do not
   * delay other requests. It is dropped if all its callers were clients that have disconnected. With an invalid configuration the
   * agent keeps the old one and reports the error at once.
   * @param follow called while the reload holds the job lock: a cycle that it requests also serves the requests it interrupted
   * @throws WritError the error of the configuration, which log and status have already
   */
  async #reload<T>(
    { onEvent, gone }: Partial<Pick<Caller, 'onEvent' | 'gone'>>,
    follow: () => Promise<T>,
  ): Promise<T> {
    let following: Promise<T> | undefined;
    const onReloaded = (): void => {
      following = follow();
      // Its error is handled below, after the reload.
      following.catch(() => undefined);
    };
    if (this.#waitingReload === undefined) {
      const waiting: ReloadCaller[] = [];
      this.#waitingReload = { askers: waiting, done: this.#queueReload(waiting) };
    }
    const { askers, done } = this.#waitingReload;
    askers.push({ gone, onReloaded });
    const stopWatching = onEvent && this.#parts.runner.watch(onEvent);
    await done.finally(stopWatching);
    return following ?? follow();
  }

  /** Reports an invalid configuration in a short job, because nothing is replaced then. */
  async #queueReload(askers: readonly ReloadCaller[]): Promise<void> {
    const { runner, observers } = this.#parts;
    const { configPath } = this.#options;
    observers.onReload('began');
    const find = (): ConfigFileState => examineConfigFile(configPath, this.#digest);
    const found = find();
    if (found.kind === 'mistake')
      await runner.runShort(async () => {
        const change = find();
        if (change.kind !== 'mistake') return;
        this.#waitingReload = undefined;
        throw this.#refuseReload(change.error);
      });
    // Interrupt a download of the old configuration, which may take hours, because the new one may name another server.
    const run = found.kind === 'none' ? runner.preempt : runner.preemptAlways;
    return this.#reloadInTurn(askers, run);
  }

  async #reloadInTurn(askers: readonly ReloadCaller[], run: Exclusive): Promise<void> {
    const { observers, scrubber, prober, bakeWatcher, poller, fleet } = this.#parts;
    const { log, configPath } = this.#options;
    return run(async () => {
      // The file is read now: a caller that arrives from here on needs another reload.
      this.#waitingReload = undefined;
      try {
        requirePresent(askers.map(({ gone }) => gone));
      } catch (error) {
        observers.onReload('kept');
        throw error;
      }
      try {
        requireState(this.#host);
        const { config, digest } = loadForAgent(configPath, log);
        const { repository } = this.#host.config;
        this.#host = await replaceHost(this.#host, config, this.#options);
        if (!isDeepStrictEqual(repository, config.repository)) forgetRetryAfter(this.#host);
        this.#digest = digest;
      } catch (error) {
        throw this.#refuseReload(error);
      }
      this.#problems.delete('reload');
      log.info('configuration reloaded');
      observers.onReload('reloaded');
      scrubber.reloaded();
      prober.reloaded();
      bakeWatcher.wake();
      poller.reloaded();
      fleet.reloaded();
      for (const { onReloaded } of askers) onReloaded();
    });
  }

  /** Reports a failed reload. @returns the error for the caller to throw */
  #refuseReload(error: unknown): WritError {
    const problem = toWritError(error);
    this.#options.log.error({ err: problem }, 'the configuration was not reloaded; the old one stays');
    this.#problems.set('reload', problemOf(problem));
    this.#publishStatus();
    this.#parts.observers.onReload('kept');
    return problem;
  }
}

interface ReloadCaller {
  readonly gone: AbortSignal | undefined;
  readonly onReloaded: () => void;
}

type ConfigFileState =
  | { readonly kind: 'none' | 'other' }
  | { readonly kind: 'mistake'; readonly error: WritError };

function examineConfigFile(path: string, digest: string): ConfigFileState {
  if (changeOfFile(path, digest) === undefined) return { kind: 'none' };
  try {
    loadForAgent(path, silentLog());
    return { kind: 'other' };
  } catch (error) {
    if (isWritError(error)) return { kind: 'mistake', error };
    throw error;
  }
}
