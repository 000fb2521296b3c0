// The parts of a running agent, made and joined: who polls, settles, scrubs, collects, watches the age of policy, and what
// is done for each request of a person. Owns no state; what one of them ends is noted by the agent that they are parts of.

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
import { createTurnLoop, type TurnLoop } from './bake-loop.js';
import { createPoller } from './poller.js';
import { createProber } from './probe-loop.js';
import { createSettler, runSettleLoop, type SettleIntervals } from './reconcile-loop.js';
import { recordTurn } from './record-turn.js';
import { createScrubber, type Scrubber } from './scrub-loop.js';
import { isStateVanished, requireState, unlessVanished, watchState } from './vanished-state.js';

/** What an agent is given of its surroundings by whoever composes the process: clock, log, randomness, signals. */
export interface AgentOptions extends HostOptions {
  readonly configPath: string;
  readonly random01: () => number;
  /** What names this machine, and an id that no other one has. */
  readonly install: InstallSource;
  /** Ends the agent in good order. */
  readonly stop: AbortSignal;
  /** Calls back at each SIGHUP; returns how to stop listening. */
  readonly onReload: (reload: () => void) => () => void;
  /** For tests: in place of the usual ones, and of every `probe.every`, which may be no shorter than 30 s. */
  readonly intervals?: SettleIntervals & { readonly probeEveryMs: number };
  /** Whoever watches the agent, as the service manager. */
  readonly observers?: readonly AgentObserver[];
  /** What of them could not be opened, until a restart. */
  readonly leftOut?: readonly Problem[];
}

/** What the parts ask of the agent, and tell it. */
export interface AgentCalls {
  /** Asked each time: a reload may have replaced it. */
  readonly host: () => Host;
  /** Of this installation; no reload changes it. */
  readonly installId: string;
  readonly status: (held?: readonly GenerationUserStatus[]) => StatusReport;
  readonly publishStatus: () => void;
  /** The end of a cycle or a rollback. */
  readonly note: (end: CycleEnd, asked: CycleOrigin) => void;
  readonly noteLook: (look: ScrubResult) => void;
  /** What is wrong outside of cycles, until it is repaired: active trees, pending loaders, a reload that failed. */
  readonly problems: Map<'damage' | 'loader' | 'reload', Problem | undefined>;
  /** @param follow called in the turn of the reload. @throws WritError what is wrong with the new configuration */
  readonly reload: <T>(
    caller: Partial<Pick<Caller, 'onEvent' | 'gone'>>,
    follow: () => Promise<T>,
  ) => Promise<T>;
}

export type AgentParts = ReturnType<typeof composeAgent>;

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
  // As it was at the last end: the first poll says what has become of it.
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
      // Asked for before the end was: who waits is notified, and no server is asked in vain.
      admit();
      const noteEndedEarly = (end: CycleEnd) => observers.onEndedEarly(end);
      const after = { contact, onRefreshed: publishStatus, exits, note, noteEndedEarly };
      const { result, exit } = await runCycleWithExit(host(), { ...run, signal: stop }, after);
      if (result.problems.some(isEndedForAnotherJob)) return undefined;
      poller.asked();
      // Apart as well: it takes its turn for what it repairs.
      void scrubAfterMismatch(result, { host, exclusive: preempt, onLook: agent.noteLook, signal: stop });
      // Apart, so that who waits for the cycle does not wait for an operator's command.
      void runShort(watchAge);
      return afterExit(result, exit);
    },
    (work) => observers.onWork(work, host().config),
  );
  const { preempt, runShort } = runner;
  const scrubber = createScrubber({ host, runner, onLook: agent.noteLook, stop });
  const prober = createProber({
    ...{ host, installId, exclusive: runShort, stop, everyMs: intervals?.probeEveryMs },
    onAsked: publishStatus,
  });
  const pull = pullApart(runner, host);
  const bakeWatcher = watchReleases({ ...options, exclusive: runShort, pull }, agent);
  const isBaking = (): boolean => host().ledger.read().bakes !== undefined;
  const settler = createSettler({
    ...{ intervals, isBaking },
    onRefused: leaveWhenRefused((end, reason) => note(end, { by: 'writ', reason })),
  });
  const settle = unlessVanished(host, async () => {
    await recordTurn({ host, stop, note, onNews: publishStatus });
    const { news, loader } = await settler.turn(host(), { signal: stop, loader: problems.get('loader') });
    problems.set('loader', loader);
    if (news === 'yes') publishStatus();
  });
  return {
    ...{ runner, poller, collector, contact, scrubber, prober, bakeWatcher, observers, downloads, fleet },
    /** Another policy is active: its workers and probes are looked at sooner than before. */
    bakeBegan: () => {
      bakeWatcher.wake();
      prober.reloaded();
    },
    settleUntilStopped: () =>
      settleBetweenPolls(options, agent, { runner, collector, isBaking, settle, watchAge }),
    handlers: handlersOf(options, agent, { runner, scrubber, feed, admit }),
  };
}

interface SettleParts {
  readonly runner: CycleRunner;
  readonly collector: Collector;
  readonly isBaking: () => boolean;
  readonly settle: () => Promise<void>;
  readonly watchAge: () => Promise<void>;
}

/** Between polls: who could not be notified is, old generations are collected, and policy grows old too. */
function settleBetweenPolls(
  { clock, stop, intervals }: AgentOptions,
  { host, publishStatus }: AgentCalls,
  { runner, collector, isBaking, settle, watchAge }: SettleParts,
): Promise<void> {
  const pull = pullApart(runner, host);
  const compareState = watchState(host, publishStatus);
  const collect = unlessVanished(host, () => collector.collectWhenDue(host(), publishStatus));
  return runSettleLoop({
    ...{ clock, stop, isBaking, turnEveryMs: intervals?.turnEveryMs },
    // It sweeps staging: never beside a cycle.
    before: () => {
      compareState();
      return runner.runUnlessCycle(collect);
    },
    turn: async () => {
      await runner.runShort(settle);
      if (!isStateVanished(host()) && endExpiredWaits(host())) pull();
    },
    after: () => runner.runShort(watchAge),
  });
}

/** @returns a pull that its caller does not wait for: a download may take hours, and the loop that asks for it goes on */
function pullApart(runner: Pick<CycleRunner, 'pull'>, host: () => Host): () => void {
  return () => {
    pullUnlessStopping(runner, 'poll').catch((error: unknown) => {
      host().log.error({ err: error }, 'a pull could not run');
    });
  };
}

/** What is watched between cycles: bake times, contact with the server, and whether commands can be confined. */
function watchReleases(
  { exclusive, pull, stop }: Pick<AgentOptions, 'stop'> & Pick<ContactTurnOptions, 'exclusive' | 'pull'>,
  { host, note, publishStatus }: AgentCalls,
): TurnLoop {
  const watched = { host, exclusive, stop, onNews: publishStatus };
  const byWrit = (end: CycleEnd, reason: string): void => note(end, { by: 'writ', reason });
  const turns = [
    createBakeTurn({ ...watched, onRestored: byWrit }),
    createContactTurn({ ...watched, isObserved: true, pull, onReactivated: byWrit }),
    createSandboxRound({ host, exclusive, onChange: publishStatus }),
  ];
  const loops = turns.map((turn) => createTurnLoop(turn, watched));
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

/** What is done for a person. Each handler takes its turn by itself. */
function handlersOf(
  options: AgentOptions,
  { host, note, status, reload, publishStatus }: AgentCalls,
  { runner, scrubber, feed, admit }: HandlerParts,
): RequestHandlers {
  const ask = <T extends ControlAnswer>({ gone }: Caller, act: () => T | Promise<T>): Promise<T> =>
    runner.runShort(async () => {
      admit();
      requirePresent([gone]);
      requireState(host());
      return act();
    });
  const order = <T extends ControlAnswer>(caller: Caller, act: () => T): Promise<T> =>
    ask(caller, () => {
      const result = act();
      publishStatus();
      return result;
    });
  return {
    pull: async ({ force, by, noBake }, { onEvent, gone }) => {
      const asked = { trigger: force ? 'force' : 'pull', by, onEvent, gone } as const;
      const result = await pullAfterDelay(runner, asked, options);
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
      // Read before its turn: a cycle that runs may bring another one.
      const left = activeGenerationNumber(host().paths) ?? 'none';
      return ask(caller, async () => {
        const { onEvent } = caller;
        const end = await rollBack(host(), { ...request, left, signal: options.stop, onEvent });
        const { by, reason } = request;
        note(end, { by, ...(reason === undefined ? {} : { reason }) });
        return end.result;
      });
    },
    verify: (request, caller) => scrubber.verify(request, caller),
    pause: (request, caller) => order(caller, () => handlePause(host(), request)),
    resume: ({ by }, caller) => order(caller, () => handleResume(host(), by)),
    refusals: async () => listRefusals(host()),
    forget: ({ type: _, ...request }, caller) => order(caller, () => handleForget(host(), request)),
  };
}
