// Creates and connects the parts of a running agent: poller, reconciler, scrubber, prober, collector, and the handlers of requests.
// Has no state of its own: running-agent.ts records the end of each cycle.

import type { Problem } from '../../core/cycle/cycle-report.js';
import { WritError } from '../../core/errors.js';
import type { ControlAnswer, StatusReport } from '../../core/protocol/control-protocol.js';
import type { GenerationUserStatus } from '../../core/status/status.js';
import { readBootId } from '../../platform/process/boot-id.js';
import { createBakeTurn } from '../bake/bake-turn.js';
import { keepActive } from '../bake/keep-release.js';
import { type ContactTurnOptions, createContactTurn } from '../contact/contact-turn.js';
import { pullAfterDelay } from '../control/activation-delay.js';
import type { Caller, RequestHandlers } from '../control/control-socket.js';
import { type CycleOrigin, createExitRollbacks, runCycleWithExit } from '../control/cycle-and-exit.js';
import { endExpiredWaits, handleForget, handlePause, handleResume } from '../control/operator-requests.js';
import { type Collector, createCollector, heldNow } from '../cycle/collector.js';
import { afterExit } from '../cycle/combined-result-rules.js';
import {
  type CycleRunner,
  createCycleRunner,
  pullUnlessStopping,
  requirePresent,
} from '../cycle/cycle-runner.js';
import { leaveWhenRefused } from '../cycle/late-refusal.js';
import { rollBack } from '../cycle/rollback.js';
import { identityOf } from '../fleet/identity.js';
import { createLazyReporter } from '../fleet/lazy-reporter.js';
import { keepContact } from '../freshness/contact-memory.js';
import { createStaleWatch } from '../freshness/stale-watch.js';
import { activeGenerationNumber } from '../generations/generations.js';
import { createSandboxRound } from '../hooks/watch-sandbox.js';
import type { InstallSource } from '../identity/install-id.js';
import type { ScrubResult } from '../integrity/scrub.js';
import { scrubAfterMismatch } from '../integrity/scrub-after-mismatch.js';
import type { CycleEnd } from '../job/cycle-result.js';
import { isEndedForAnotherJob } from '../job/exclusive.js';
import { readHistory, requireHistory } from '../job/history.js';
import { watchDownloads } from '../report/download-watch.js';
import { type AgentObserver, combineObservers } from '../report/observer.js';
import { listRefusals } from '../report/refusal-status.js';
import { createStatusFeed, type StatusFeed } from '../report/status-feed.js';
import { readStatusFile } from '../report/status-file.js';
import type { Host, HostOptions } from '../state/host.js';
import { recordPendingRestore } from './pending-restore.js';
import { createPoller } from './poller.js';
import { createProber } from './probe-loop.js';
import { createReconciler, type ReconcileIntervals, runReconcileLoop } from './reconcile-loop.js';
import { createRoundLoop, type RoundLoop } from './round-loop.js';
import { createScrubber, type Scrubber } from './scrub-loop.js';
import { isStateVanished, requireState, unlessVanished, watchState } from './vanished-state.js';

/** The environment of an agent: clock, log, randomness and signals. */
export interface AgentOptions extends HostOptions {
  readonly configPath: string;
  readonly random01: () => number;
  /** Identifies this machine and this installation. */
  readonly install: InstallSource;
  /** Stops the agent after its current jobs. */
  readonly stop: AbortSignal;
  /** Calls `reload` at each SIGHUP. @returns a function that stops this */
  readonly onReload: (reload: () => void) => () => void;
  /** For tests: replaces the default intervals, and every `probe.every`, which is at least 30 s otherwise. */
  readonly intervals?: ReconcileIntervals & { readonly probeEveryMs: number };
  /** Further observers of the agent, as the service manager. */
  readonly observers?: readonly AgentObserver[];
  /** Problems of observers that could not be opened; they last until a restart. */
  readonly leftOut?: readonly Problem[];
}

/** The calls of the parts to the agent. */
export interface AgentCalls {
  /** Called at each use, because a reload may have replaced the host. */
  readonly host: () => Host;
  /** The id of this installation, which a reload does not change. */
  readonly installId: string;
  readonly status: (held?: readonly GenerationUserStatus[]) => StatusReport;
  readonly publishStatus: () => void;
  /** Records the end of a cycle or a rollback. */
  readonly note: (end: CycleEnd, asked: CycleOrigin) => void;
  readonly recordScrub: (scan: ScrubResult) => void;
  /** Problems outside of cycles, until they end: damaged active trees, pending loaders, a failed reload. */
  readonly problems: Map<'damage' | 'loader' | 'reload', Problem | undefined>;
  /** @param follow called while the reload holds the job lock. @throws WritError the error of the new configuration */
  readonly reload: <T>(
    caller: Partial<Pick<Caller, 'onEvent' | 'gone'>>,
    follow: () => Promise<T>,
  ) => Promise<T>;
}

export type AgentParts = ReturnType<typeof composeAgent>;

/** @returns the connected parts. None runs yet; they use the host that `agent.host()` returns at each call. */
export function composeAgent(options: AgentOptions, agent: AgentCalls) {
  const { host, installId, note, publishStatus, problems } = agent;
  const { clock, stop, random01, intervals } = options;
  const feed = createStatusFeed({ clock, now: () => agent.status() });
  const downloads = watchDownloads();
  const fleet = createLazyReporter({
    ...{ host, stop, random01, onStatusChange: publishStatus },
    identity: () => identityOf(host(), installId),
    status: () => agent.status(),
  });
  const observers = combineObservers([
    feed.observer,
    downloads.observer,
    fleet.observer,
    ...(options.observers ?? []),
  ]);
  // The contact at the end of the previous process run, until the first poll.
  const contact = keepContact(readStatusFile(host().paths), clock);
  const exits = createExitRollbacks();
  const poller = createPoller({ host, installId, contact, random01, stop });
  const staleWatch = createStaleWatch(readBootId());
  const collector = createCollector();
  const admit = (): void => {
    if (stop.aborted) throw new WritError('AGENT_STOPPING', 'the agent is shutting down');
  };
  const watchAge = unlessVanished(host, async () => {
    if ((await staleWatch.check(host(), contact, stop)) === 'changed') publishStatus();
  });
  const runner = createCycleRunner(
    async (run) => {
      // Reject a request that waited when the stop request came, without contacting the server.
      admit();
      const noteEndedEarly = (end: CycleEnd) => observers.onEndedEarly(end);
      const after = { contact, onRefreshed: publishStatus, exits, note, noteEndedEarly };
      const { result, exit } = await runCycleWithExit(host(), { ...run, signal: stop }, after);
      if (result.problems.some(isEndedForAnotherJob)) return undefined;
      poller.onCycleEnd();
      // Not awaited, because a repair waits for the job lock.
      void scrubAfterMismatch(result, { host, exclusive: preempt, onScan: agent.recordScrub, signal: stop });
      // Not awaited, so that the caller of the cycle does not wait for the `onStale` command of the operator.
      void runShort(watchAge);
      return afterExit(result, exit);
    },
    (work) => observers.onWork(work, host().config),
  );
  const { preempt, runShort } = runner;
  const scrubber = createScrubber({ host, runner, onScan: agent.recordScrub, stop });
  const prober = createProber({
    ...{ host, installId, exclusive: runShort, stop, everyMs: intervals?.probeEveryMs },
    onAsked: publishStatus,
  });
  const pull = pullInBackground(runner, host);
  const bakeWatcher = watchReleases({ ...options, exclusive: runShort, pull }, agent);
  const isBaking = (): boolean => host().ledger.read().bakes !== undefined;
  const reconciler = createReconciler({
    ...{ intervals, isBaking },
    onRefused: leaveWhenRefused((end, reason) => note(end, { by: 'writ', reason })),
  });
  const reconcile = unlessVanished(host, async () => {
    await recordPendingRestore({ host, stop, note, onChange: publishStatus });
    const round = await reconciler.runRound(host(), { signal: stop, loader: problems.get('loader') });
    problems.set('loader', round.loader);
    if (round.hasChanged) publishStatus();
  });
  return {
    ...{ runner, poller, collector, contact, scrubber, prober, bakeWatcher, observers, downloads, fleet },
    /** Called after an activation: the workers and probes of the release are checked more often from now on. */
    bakeBegan: () => {
      bakeWatcher.wake();
      prober.reloaded();
    },
    reconcileUntilStopped: () =>
      reconcileBetweenPolls(options, agent, { runner, collector, isBaking, reconcile, watchAge }),
    handlers: handlersOf(options, agent, { runner, scrubber, feed, admit }),
  };
}

interface ReconcileParts {
  readonly runner: CycleRunner;
  readonly collector: Collector;
  readonly isBaking: () => boolean;
  readonly reconcile: () => Promise<void>;
  readonly watchAge: () => Promise<void>;
}

/** Runs the work between polls: notifies pending workers, collects old generations, and checks the age of the policy. */
function reconcileBetweenPolls(
  { clock, stop, intervals }: AgentOptions,
  { host, publishStatus }: AgentCalls,
  { runner, collector, isBaking, reconcile, watchAge }: ReconcileParts,
): Promise<void> {
  const pull = pullInBackground(runner, host);
  const compareState = watchState(host, publishStatus);
  const collect = unlessVanished(host, () => collector.collectWhenDue(host(), publishStatus));
  return runReconcileLoop({
    ...{ clock, stop, isBaking, roundEveryMs: intervals?.roundEveryMs },
    // The collector cleans staging, so it must not run during a cycle.
    before: () => {
      compareState();
      return runner.runUnlessCycle(collect);
    },
    runRound: async () => {
      await runner.runShort(reconcile);
      if (!isStateVanished(host()) && endExpiredWaits(host())) pull();
    },
    after: () => runner.runShort(watchAge),
  });
}

/** @returns a function that starts a pull without waiting for it, because a download may take hours */
function pullInBackground(runner: Pick<CycleRunner, 'pull'>, host: () => Host): () => void {
  return () => {
    pullUnlessStopping(runner, 'poll').catch((error: unknown) => {
      host().log.error({ err: error }, 'a pull could not run');
    });
  };
}

/** Creates the loops that run between cycles: for bake times, contact with the server, and the sandbox. */
function watchReleases(
  { exclusive, pull, stop }: Pick<AgentOptions, 'stop'> & Pick<ContactTurnOptions, 'exclusive' | 'pull'>,
  { host, note, publishStatus }: AgentCalls,
): RoundLoop {
  const watched = { host, exclusive, stop, onNews: publishStatus };
  const recordByWrit = (end: CycleEnd, reason: string): void => note(end, { by: 'writ', reason });
  const rounds = [
    createBakeTurn({ ...watched, onRestored: recordByWrit }),
    createContactTurn({ ...watched, isObserved: true, pull, onReactivated: recordByWrit }),
    createSandboxRound({ host, exclusive, onChange: publishStatus }),
  ];
  const loops = rounds.map((runRound) => createRoundLoop(runRound, { host, stop }));
  return {
    run: async () => void (await Promise.all(loops.map((one) => one.run()))),
    wake: () => {
      for (const one of loops) one.wake();
    },
  };
}

interface HandlerParts {
  readonly runner: CycleRunner;
  readonly scrubber: Scrubber;
  readonly feed: StatusFeed;
  /** @throws WritError AGENT_STOPPING */
  readonly admit: () => void;
}

/** The handlers of requests. Each takes the job lock by itself. */
function handlersOf(
  options: AgentOptions,
  { host, note, status, reload, publishStatus }: AgentCalls,
  { runner, scrubber, feed, admit }: HandlerParts,
): RequestHandlers {
  const handle = <T extends ControlAnswer>({ gone }: Caller, act: () => T | Promise<T>): Promise<T> =>
    runner.runShort(async () => {
      admit();
      requirePresent([gone]);
      requireState(host());
      return act();
    });
  const handleChange = <T extends ControlAnswer>(caller: Caller, act: () => T): Promise<T> =>
    handle(caller, () => {
      const result = act();
      publishStatus();
      return result;
    });
  return {
    pull: async ({ force, by, noBake }, { onEvent, gone }) => {
      const pull = { trigger: force ? 'force' : 'pull', by, onEvent, gone } as const;
      const result = await pullAfterDelay(runner, pull, options);
      if (noBake === true) await runner.runShort(async () => keepActive(host(), result, by));
      return result;
    },
    reload: async ({ by }, { onEvent, gone }) => {
      return reload({ onEvent, gone }, () => {
        onEvent({ type: 'reloaded' });
        return runner.pull({ trigger: 'reload', by, onEvent, gone });
      });
    },
    status: async () => status(await heldNow(host())),
    watch: async (_, caller) => {
      await feed.watch(caller);
      return { type: 'end' };
    },
    history: async (request, { send }) => {
      requireHistory(host().paths);
      for (const entry of readHistory(host().paths, request)) await send(entry);
      return { type: 'end' };
    },
    rollback: (request, caller) => {
      // Read before the wait for the job lock, because a running cycle may activate another generation.
      const left = activeGenerationNumber(host().paths) ?? 'none';
      return handle(caller, async () => {
        const { onEvent } = caller;
        const end = await rollBack(host(), { ...request, left, signal: options.stop, onEvent });
        const { by, reason } = request;
        note(end, { by, ...(reason === undefined ? {} : { reason }) });
        return end.result;
      });
    },
    verify: (request, caller) => scrubber.verify(request, caller),
    pause: (request, caller) => handleChange(caller, () => handlePause(host(), request)),
    resume: ({ by }, caller) => handleChange(caller, () => handleResume(host(), by)),
    refusals: async () => listRefusals(host()),
    forget: ({ type: _, ...request }, caller) => handleChange(caller, () => handleForget(host(), request)),
  };
}
