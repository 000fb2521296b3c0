// `writ repo check`: checks that every file that hosts could request exists, is intact, and has the required signatures.

import { defaultArchiveLimits } from '../../../core/limits.js';
import { sizeText } from '../../../core/size-text.js';
import { type CheckReport, checkRepository } from '../../../publisher/upkeep/check-repository.js';
import type { Answer, CommandDefinition, Reporter } from '../../console/command.js';
import type { FlagValues } from '../../console/flags.js';
import { ownRootFlag, repositoryFlag } from '../../repository/repository-flags.js';
import { counted } from '../../show/show-text.js';

const flags = { repository: repositoryFlag, keys: ownRootFlag };
type RepoCheckFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<RepoCheckFlags> = {
  examples: ['writ repo check --repository repo', 'writ repo check --repository repo --keys keys --json'],
  exitCodes: [
    '0  every root, role and archive verifies',
    '1  something does not verify: each problem has a code',
    '2  usage',
  ],
  flags,
  run: async (_args, flags, { clock, reporter, at }) => {
    const report = await checkRepository({
      repository: at(flags.repository),
      keysDirectory: at(flags.keys),
      limits: defaultArchiveLimits,
      clock,
      report: reporter,
    });
    narrate(report, reporter);
    for (const note of report.notes) reporter.warn(note);
    return answer(report, flags);
  },
};

/** Prints each step: FAIL for a step with a problem, and skip for a step that did not run because an earlier one failed. */
function narrate(report: CheckReport, reporter: Reporter): void {
  const { problems, roles } = report;
  const wrong = { roots: false, roles: false, archives: false };
  for (const { where } of problems) wrong[stepOf(where)] = true;
  const end = (step: keyof typeof wrong, text: string, { ran }: { readonly ran: boolean }): void =>
    reporter.finish(step, ran ? text : 'not checked', wrong[step] ? 'FAIL' : ran ? 'ok' : 'skip');
  const hasRoles = roles.length > 0 || wrong.roles;
  end('roots', counted(report.roots, 'root'), { ran: true });
  end('roles', roles.map(({ role, version }) => `${role} v${version}`).join(', '), { ran: hasRoles });
  const hasTargets = roles.some(({ role }) => role === 'targets');
  end('archives', archivesText(report), { ran: hasTargets || wrong.archives });
}

function stepOf(where: string): 'roots' | 'roles' | 'archives' {
  if (!where.startsWith('metadata')) return 'archives';
  return where.endsWith('.root.json') ? 'roots' : 'roles';
}

function archivesText({ archives, archiveBytes, deltas }: CheckReport): string {
  const leading = deltas === 0 ? '' : `, ${counted(deltas, 'delta')}`;
  return `${counted(archives, 'archive')}, ${sizeText(archiveBytes)}${leading}`;
}

function answer(report: CheckReport, { repository }: RepoCheckFlags): Answer {
  const { problems, moreProblems, roots, roles } = report;
  const count = problems.length + moreProblems;
  const details = { repository, ...report };
  if (count === 0) {
    const text = `${counted(roots, 'root')}, ${counted(roles.length, 'role')}, ${archivesText(report)}`;
    return { outcome: 'intact', details, lines: [`INTACT ${repository} verifies: ${text}`] };
  }
  return {
    outcome: 'damaged',
    exitCode: 1,
    details,
    lines: [
      `DAMAGED ${repository}: ${counted(count, 'problem')}`,
      ...problems.flatMap(({ code, where, message }) => [`  ${code}  ${where}`, `    ${message}`]),
      ...(moreProblems === 0 ? [] : [`  (${counted(moreProblems, 'more problem')})`]),
    ],
  };
}
