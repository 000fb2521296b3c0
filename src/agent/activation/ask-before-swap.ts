// Which servers answer just before a swap. Without that, their silence after it says nothing about the release.
import { bakeOf, type ContactServer } from '../../core/config/config.js';
import type { Host } from '../state/host.js';
import type { ContactBefore } from '../state/ledger.js';
import type { Move } from './move.js';

/** @returns undefined where no bundle that may change watches its contact */
export async function askBeforeSwap(
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
