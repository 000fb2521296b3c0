// `writ sign --role`: a role that lists releases is signed anew; until when it holds now, and who takes it live.
import { type ResignRoleResult, resignRole } from '../publisher/resign-role.js';
import { type ChangeFlags, changeOptions, narrateSigned, refreshLine, waitingText } from './change-flags.js';
import type { Answer, CommandContext } from './command.js';
import { isoDay } from './show-repository.js';
import { counted } from './show-text.js';

/** @throws WritError as resignRole */
export async function signRoleAgain(
  role: string,
  flags: ChangeFlags,
  context: CommandContext,
): Promise<Answer> {
  const result = await resignRole(role, changeOptions(flags, context, 'sign'));
  const signed = [{ role, version: result.version }];
  narrateSigned({ ...result, signed }, context.reporter);
  return answer(result, flags);
}

function answer(result: ResignRoleResult, { repository }: ChangeFlags): Answer {
  const { role, version, before, expiresMs, releases } = result;
  const until = `until ${isoDay(expiresMs)}${before === undefined ? '' : `, before ${isoDay(before.expiresMs)}`}`;
  const text = `${role} v${version}: ${counted(releases, 'release')}, ${until}`;
  const details = {
    changed: true,
    role,
    version,
    previousVersion: before?.version ?? null,
    expires: new Date(expiresMs).toISOString(),
    releases,
  };
  const base = { type: 'sign.result', outcome: 'signed', exitCode: 0 };
  if (result.kind === 'live') {
    return { ...base, details: { ...details, versions: result.versions }, lines: [`SIGNED ${text}`] };
  }
  return {
    ...base,
    details: { ...details, missing: result.missing },
    lines: [`SIGNED ${text}${waitingText(result.missing)}`],
    next: refreshLine(repository),
  };
}
