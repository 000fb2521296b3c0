// What a repository offers now, by a client whose refresh succeeded: the signed entry of each bundle and channel. A role that cannot
// be trusted costs its own channels their news, and no other's. Owns no rule of trust.
import { isWritError, toWritError, type WritError } from '../../core/errors.js';
import type { SignedEntry } from '../../core/fleet/signed-releases.js';
import { given } from '../../core/given.js';
import { digestHex, isName } from '../../core/names.js';
import type { RepositoryClient } from '../../trust/repository-client.js';
import { type FoundFile, readSignedTarget } from '../../trust/signed-target.js';

export type NewEntry = Omit<SignedEntry, 'seenAtMs'>;
export type ChannelName = Pick<SignedEntry, 'bundle' | 'channel'>;

export interface Offer {
  readonly entries: readonly NewEntry[];
  /** Channels of which nothing could be learnt: what was known of them stays. */
  readonly unread: readonly ChannelName[];
  /** The first reason of it. */
  readonly trouble?: WritError;
}

/** Of one repository: what lies beyond is not judged. */
const maxChannels = 1000;

/** @param known channels to ask for one by one where a delegated role stands in the way of a list */
export async function readOffer(
  client: Pick<RepositoryClient, 'list' | 'target'>,
  known: readonly ChannelName[],
  signal: AbortSignal,
): Promise<Offer> {
  try {
    const { files } = (await client.list({ signal })) ?? { files: [] };
    return gather(files.flatMap(nameOf).slice(0, maxChannels), async ({ file, ...name }) =>
      readEntry(file, name),
    );
  } catch (error) {
    if (!isWritError(error) || signal.aborted) throw error;
    const offer = await gather(known, async (name) => {
      const found = await client.target(name.bundle, name.channel, { signal });
      return found && readEntry(found, name);
    });
    return { ...offer, trouble: error };
  }
}

async function gather<Name extends ChannelName>(
  names: readonly Name[],
  read: (name: Name) => Promise<NewEntry | undefined>,
): Promise<Offer> {
  const entries: NewEntry[] = [];
  const unread: ChannelName[] = [];
  const troubles: WritError[] = [];
  for (const name of names) {
    try {
      const entry = await read(name);
      if (entry !== undefined) entries.push(entry);
    } catch (error) {
      troubles.push(toWritError(error));
      unread.push(name);
    }
  }
  const [trouble] = troubles;
  return { entries, unread, ...(trouble === undefined ? {} : { trouble }) };
}

/** Files of other publishers may be beside ours. */
function nameOf(file: FoundFile): (ChannelName & { readonly file: FoundFile })[] {
  const [, bundle = '', channel = ''] = /^([^/]+)\/([^/]+)\.tar\.br$/.exec(file.path) ?? [];
  return isName(bundle) && isName(channel) ? [{ bundle, channel, file }] : [];
}

function readEntry(file: FoundFile, name: ChannelName): NewEntry {
  const { release, digest, length, vouchedBy } = readSignedTarget(file, name);
  const { serial, manifest, revision, createdAtMs, requires = [], fixes, stamped, withdrawn } = release;
  return {
    bundle: name.bundle,
    channel: name.channel,
    serial,
    manifest: digestHex(manifest.digest),
    manifestBytes: manifest.length,
    archive: digestHex(digest),
    archiveBytes: length,
    revision,
    createdAtMs,
    role: vouchedBy.role,
    requires,
    ...given({ fixes }),
    stamps: (stamped?.stamps ?? []).map(({ path }) => path),
    withdrawn,
  };
}
