// What each request on the control socket is answered with. Owns the mapping from requests to answers alone: what is
// done, and in whose turn, is behind the doors.
import type { CycleResult } from '../../core/cycle/cycle-report.js';
import type {
  ControlAnswer,
  ControlRequest,
  HistoryEntry,
  PauseResult,
  ResumeResult,
  StatusReport,
} from '../../core/protocol/control-protocol.js';
import type { VerifyResult } from '../../core/status/verify-report.js';
import type { PullRequest } from '../cycle/cycle-runner.js';
import type { SendAnswer } from '../report/observer.js';
import type { Watcher } from '../report/status-feed.js';

export type RequestOf<Type extends ControlRequest['type']> = Extract<ControlRequest, { type: Type }>;

/** What the agent does for a request; each door takes its turn by itself. */
export interface RequestDoors {
  readonly pull: (request: PullRequest) => Promise<CycleResult>;
  /** Reads the configuration again, then pulls. @throws WritError CONFIG_*: the old one stays */
  readonly reload: (request: PullRequest) => Promise<CycleResult>;
  readonly status: () => Promise<StatusReport>;
  /** Resolves when the agent or who watches it ends. */
  readonly watch: (watcher: Watcher) => Promise<void>;
  readonly history: (request: RequestOf<'history'>) => readonly HistoryEntry[];
  readonly rollback: (request: RequestOf<'rollback'>, onEvent: OnAnswer) => Promise<CycleResult>;
  readonly verify: (request: RequestOf<'verify'>, onEvent: OnAnswer) => Promise<VerifyResult>;
  readonly resume: (request: RequestOf<'resume'>) => Promise<ResumeResult>;
  readonly pause: (request: RequestOf<'pause'>) => Promise<PauseResult>;
}

type OnAnswer = (event: ControlAnswer) => void;

/** Answers one request. @throws WritError of what is behind the door: it is sent as an error */
export async function answerRequest(
  doors: RequestDoors,
  request: ControlRequest,
  send: SendAnswer,
  gone: AbortSignal,
): Promise<void> {
  const onEvent = (event: ControlAnswer): void => void send(event);
  switch (request.type) {
    case 'pull': {
      const trigger = request.force ? 'force' : 'pull';
      return send(await doors.pull({ trigger, by: request.by, onEvent }));
    }
    case 'reload':
      return send(await doors.reload({ trigger: 'reload', by: request.by, onEvent }));
    case 'status':
      return send(await doors.status());
    case 'watch':
      await doors.watch({ send, gone });
      return send({ type: 'end' });
    case 'history':
      for (const entry of doors.history(request)) await send(entry);
      return send({ type: 'end' });
    case 'rollback':
      return send(await doors.rollback(request, onEvent));
    case 'verify':
      return send(await doors.verify(request, onEvent));
    case 'resume':
      return send(await doors.resume(request));
    case 'pause':
      return send(await doors.pause(request));
    default:
      return request satisfies never;
  }
}
