// Checks which servers answer before a swap. If a server did not answer before, a timeout after the swap is no evidence
// against the release.
import { bakeOf, type ContactServer } from '../../core/config/config.js';
import type { Host } from '../state/host.js';
import type { ContactBefore } from '../state/ledger.js';
import type { Move } from './move.js';

/**
 * Contacts the servers in the bake times of the changing bundles; for a rollback, of all bundles.
 * @returns the new generation, and the servers that answered; undefined for a repair, and if no bake time has a contact
 */
export async function checkContactBeforeSwap(
  { config, contactServer }: Pick<Host, 'config' | 'contactServer'>,
  { kind, releases, to }: Pick<Move, 'kind' | 'releases' | 'to'>,
): Promise<ContactBefore | undefined> {
  if (kind === 'repair') return undefined;
  const changed = releases.map(({ bundle }) => bundle);
  const names = kind === 'rollback' ? config.bundles.map(({ name }) => name) : changed;
  const servers = new Set(names.flatMap((name) => bakeOf(config, name).contact ?? []));
  if (servers.size === 0) return undefined;
  const reached = await Promise.all(
    [...servers].map(async (server): Promise<ContactServer[]> => {
      return (await contactServer(server)) === undefined ? [server] : [];
    }),
  );
  return { generation: to, reached: reached.flat() };
}
