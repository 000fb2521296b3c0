// `writ sign --role`: re-signs a role that lists releases, and prints its new expiry and who publishes it.
import {
  previewResign,
  type ResignRoleResult,
  resignRole,
  type VersionedRole,
} from '../../publisher/signing/resign-role.js';
import type { Answer, CommandContext } from '../console/command.js';
import { isoDay, leftOutLines, releaseDetails, releaseLines } from '../show/show-repository.js';
import { counted } from '../show/show-text.js';
import { type ChangeFlags, changeAnswer, changeOptions, previewOf, reportSigned } from './change-flags.js';

/**
 * Re-signs a role that lists releases, as `targets`; with `dryRun` it opens no key and writes nothing.
 * @returns the output of the command: outcome `signed`, or `would-sign` of type `sign.preview` for `dryRun`. The first line
 *   names the version, as `SIGNED targets v5: 3 releases, until 2027-11-21`. If the online keys are missing, `next` is the
 *   command that publishes the version
 * @throws WritError ROLE_UNKNOWN, KEYS_MISSING, KEY_UNREADABLE, PASSPHRASE_*, CLOCK_UNSURE, REPOSITORY_LOCKED,
 *   REPOSITORY_INVALID (nothing was published), SIGNATURE_DISAGREEMENT, DISK_*
 */
export async function signRoleAgain(
  role: string,
  flags: ChangeFlags & { readonly dryRun?: boolean | undefined },
  context: CommandContext,
): Promise<Answer> {
  const options = changeOptions(flags, context, 'sign');
  if (flags.dryRun) {
    const plan = previewResign(role, options);
    const lines = [`WOULD SIGN ${textOf(plan)}`, ...contentLines(plan, flags)];
    return previewOf('sign', { outcome: 'would-sign', details: detailsOf(plan), lines });
  }
  const result = await resignRole(role, options);
  const signed = [{ role, version: result.version }];
  reportSigned({ ...result, signed }, context.reporter);
  return answer(result, flags);
}

function answer(result: ResignRoleResult, flags: ChangeFlags): Answer {
  const { role, newReleases } = result;
  const others = newReleases.filter((entry) => entry.role !== role);
  const label = result.kind === 'live' ? 'publishes' : 'waits';
  const lines = [...contentLines(result, flags), ...releaseLines(label, others)];
  const texts = { what: textOf(result), lines, listsNewReleases: true } as const;
  const change = { outcome: 'signed', details: detailsOf(result), ...texts };
  return { ...changeAnswer(result, change, flags), outcome: 'signed' };
}

/** The releases that the new version lists, and the files that it leaves out. */
function contentLines({ listed, leftOut }: VersionedRole, { repository }: ChangeFlags): string[] {
  return [...releaseLines('signs', listed), ...leftOutLines(leftOut, repository)];
}

/** As `targets v5: 3 releases, until 2027-11-21, before 2026-12-01`. */
function textOf({ role, version, before, expiresMs, releases }: VersionedRole): string {
  const until = `until ${isoDay(expiresMs)}${before === undefined ? '' : `, before ${isoDay(before.expiresMs)}`}`;
  return `${role} v${version}: ${counted(releases, 'release')}, ${until}`;
}

function detailsOf(plan: VersionedRole): Record<string, unknown> {
  const { role, version, before, expiresMs, releases, listed, leftOut } = plan;
  return {
    role,
    version,
    previousVersion: before?.version ?? null,
    expires: new Date(expiresMs).toISOString(),
    releases,
    listed: releaseDetails(listed),
    leftOut: leftOut.map(({ name }) => name),
  };
}
