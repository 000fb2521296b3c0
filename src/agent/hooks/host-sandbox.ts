// What a host itself says to every command in the sandbox: where policy lies, which groups may read it, and whether there is one.
import { isWritError } from '../../core/errors.js';
import { lookUpGroup } from '../../platform/users/group-id.js';
import type { Host } from '../state/host.js';
import type { HookSandbox } from './hook.js';

/** @returns all that a confined command needs but its view of policy */
export function confineOn({
  sandbox,
  paths,
  config,
}: Pick<Host, 'sandbox' | 'paths' | 'config'>): Omit<HookSandbox, 'view' | 'places'> {
  const readers = config.bundles.flatMap(({ group }) => (group === undefined ? [] : groupsNamed(group)));
  return { sandbox, paths, readers, secrets: secretsOf(config) };
}

function secretsOf({ workers, socket, metrics }: Host['config']): string[] {
  const files = workers.map(({ reset }) => reset?.options['authorizationFile']);
  const answers = metrics?.kind === 'unix' ? [socket, metrics.path] : [socket];
  return [...new Set([...files.filter((file) => typeof file === 'string'), ...answers])];
}

/** A group that does not exist is staging's to refuse. */
function groupsNamed(group: string | number): number[] {
  try {
    return [lookUpGroup(group)];
  } catch (error) {
    if (isWritError(error)) return [];
    throw error;
  }
}

/** So that status tells from the first. Nothing waits for one: what is active was judged before it. */
export async function lookForSandbox({ sandbox, log }: Pick<Host, 'sandbox' | 'log'>): Promise<void> {
  try {
    await sandbox.open();
  } catch (error) {
    log.warn({ err: error }, 'no command can be confined');
  }
}
