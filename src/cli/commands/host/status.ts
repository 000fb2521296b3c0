// `writ status`: prints the active policy, the status source and the problems. Loads only the parser and a socket.
import { WritError } from '../../../core/errors.js';
import { given } from '../../../core/given.js';
import type { ServiceCommands } from '../../../core/status/agent-service.js';
import { judgeHostHealth } from '../../../core/status/host-health.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import { type FlagValues, optional, toggle } from '../../console/flags.js';
import { agentService, type ConfigFlags, configFlag, withConfig } from '../../host/agent-requests.js';
import { type KnownStatus, readKnownStatus } from '../../host/read-status.js';
import { showStatus, statusLabel, statusLine } from '../../show/show-status.js';
import { roughly } from '../../show/show-text.js';

const flags = {
  ...configFlag,
  watch: toggle(
    '--watch',
    'keep watching: redrawn on a terminal, else one line (or JSON object) for each change',
  ),
  waitReport: optional(
    '--wait-report <duration>',
    'wait until a fleet server has acknowledged a report of this host, at most this long',
  ),
};

export const command: CommandDefinition<FlagValues<typeof flags>> = {
  examples: ['writ status', 'writ status --watch', 'writ status --json', 'writ status --wait-report 2m'],
  exitCodes: [
    '0  answered, whatever the state is',
    '1  no answer; with --watch: the agent has ended; with --wait-report: time over, with the reason',
    '2  usage or configuration',
    '7  --watch: the agent has too many watchers',
    '130  ended by Ctrl-C',
  ],
  onSignal: 'drain',
  quiet: 'first-line',
  flags,
  run: async (_args, flags, context) => {
    if (flags.watch && flags.waitReport !== undefined)
      throw new WritError('USAGE', '--watch and --wait-report exclude each other');
    if (flags.watch) return watch(flags, context);
    if (flags.waitReport !== undefined) {
      const { waitForReport } = await import('../../host/wait-for-report.js');
      const readStatus = async () => (await readKnownStatus(flags, context)).report;
      return withConfig(await waitForReport({ wait: flags.waitReport, context, readStatus }), flags);
    }
    return answerOf(await readKnownStatus(flags, context), flags, agentService(context));
  },
};

function answerOf(status: KnownStatus, flags: ConfigFlags, service: ServiceCommands): Answer {
  const { report, kind: source } = status;
  const { schema: _schema, type: _type, ...rest } = report;
  const { level } = judgeHostHealth(report);
  const ageMs = status.kind === 'file' ? status.ageMs : undefined;
  const details = { ...rest, health: level, source, ...given({ ageMs }) };
  const { lines, ...shown } = showStatus(report, service);
  const by = status.kind === 'file' ? [`  by        ${statusFileText(status)}`] : [];
  const [head = '', ...more] = lines;
  return withConfig(
    { outcome: statusLabel(report), level, details, ...shown, lines: [head, ...by, ...more] },
    flags,
  );
}

function statusFileText({ ageMs, socket }: Extract<KnownStatus, { kind: 'file' }>): string {
  const reason =
    socket === 'denied'
      ? 'this user cannot open a socket of the agent'
      : 'no agent listens, and this user cannot read the state directory';
  return `status.json, ${roughly(ageMs)} old: ${reason}`;
}

async function watch(flags: ConfigFlags, context: CommandContext): Promise<Answer> {
  const { watchStatus } = await import('../../host/watch-status.js');
  const service = agentService(context);
  const end = await watchStatus({
    flags,
    context,
    onStatus: (status, hasChanged) => {
      const answer = answerOf(status, flags, service);
      if (hasChanged) context.redraw(answer, statusLine(status.report));
      else context.redraw(answer);
    },
  });
  const ended = { type: 'watch.result', outcome: end, details: {} };
  if (end === 'interrupted') return { ...ended, exitCode: 130, lines: [] };
  const lines = ['ENDED  the agent has ended; the active policy stays active'];
  return withConfig({ ...ended, exitCode: 1, lines, next: 'writ status' }, flags);
}
