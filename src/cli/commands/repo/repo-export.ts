// `writ repo export`: copies the published repository to a USB stick, and prints its expiry and the URL for hosts.

import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { given } from '../../../core/given.js';
import { sizeText } from '../../../core/size-text.js';
import { timeLeft } from '../../../core/text/iso-time.js';
import { createDurableFs } from '../../../platform/disk/durable-fs.js';
import { type ExportResult, exportRepository } from '../../../publisher/upkeep/export-repository.js';
import type { Answer, CommandDefinition } from '../../console/command.js';
import { nameFlag, repeatedFlag } from '../../console/flag-values.js';
import { type FlagValues, optional } from '../../console/flags.js';
import { lockWait, lockWaitFlag, repositoryFlag } from '../../repository/repository-flags.js';
import { isoDay } from '../../show/show-repository.js';
import { counted } from '../../show/show-text.js';

const flags = {
  repository: repositoryFlag,
  bundle: optional(
    '--bundle <name>',
    'only archives of this bundle; may be repeated',
    repeatedFlag(nameFlag),
  ),
  lockWait: lockWaitFlag,
};

export const command: CommandDefinition<FlagValues<typeof flags>> = {
  examples: [
    'writ repo export /media/usb/policy --repository repo',
    'writ repo export /media/usb/policy --repository repo --bundle dns-edge --bundle access',
  ],
  exitCodes: [
    '0  exported, and verified before its timestamp was written',
    '1  the repository does not verify, or a disk failure; an older export is unchanged',
    '2  usage, or DIR contains something else',
    '7  another process writes the repository',
  ],
  args: [['<dir>', 'new, empty, or an older export of this repository']],
  flags,
  acts: () => true,
  run: async ([directory = ''], flags, { clock, reporter, at }) => {
    const result = await exportRepository({
      repository: at(flags.repository),
      directory: at(directory),
      clock,
      durableFs: createDurableFs(),
      ...lockWait(flags, { reporter }),
      report: reporter,
      bundles: flags.bundle,
    });
    const { releases, copied } = result;
    reporter.finish(
      'export',
      `${counted(releases.length, 'archive')}, ${copied} copied; verified from the first root`,
    );
    const { rollback, newer } = result;
    if (rollback !== undefined) reporter.warn(`${rollback.message} [${rollback.code}]. ${rollback.hint}`);
    if (newer !== undefined) reporter.warn(newer);
    return answer(result, resolve(at(directory)), clock.nowMs());
  },
};

function answer(result: ExportResult, directory: string, nowMs: number): Answer {
  const { releases, copied, bytes, removed, expires, rollback, newer } = result;
  const url = `${pathToFileURL(directory).href}/`;
  const left = timeLeft(expires.atMs - nowMs);
  return {
    outcome: 'exported',
    details: {
      changed: true,
      directory,
      url,
      releases: releases.map(({ path, release: { bundle, channel, serial } }) => {
        return { path, bundle, channel, serial };
      }),
      bytes,
      copied,
      removed,
      expires: { role: expires.role, at: new Date(expires.atMs).toISOString() },
      ...given({
        newerSnapshot: newer,
        rollback: rollback && { code: rollback.code, message: rollback.message, facts: rollback.facts },
      }),
    },
    lines: [
      `EXPORTED ${counted(releases.length, 'release')} to ${directory}   ${sizeText(bytes)}`,
      ...releases.map(
        ({ release: { bundle, channel, serial } }) => `  ${bundle} ${channel} serial ${serial}`,
      ),
      `  Hosts accept it until ${isoDay(expires.atMs)} (${expires.role}, ${left}), with repository: ${url}`,
    ],
  };
}
