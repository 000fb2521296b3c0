// A client that takes an archive from this host itself before it asks a mirror: what was kept is held to the signed
// digest like any other transfer, and what of it is damaged is taken from the next place.
import * as fs from 'node:fs';
import { isWritError, WritError } from '../../core/errors.js';
import { diskError } from '../../platform/disk/durable-fs.js';
import type { TransferStart } from '../../trust/download.js';
import type { RepositoryClient } from '../../trust/repository-client.js';
import type { SignedTarget } from '../../trust/signed-target.js';
import { archivePathOf } from '../generations/release-records.js';
import type { Host } from '../state/host.js';
import { releaseName } from '../state/paths.js';

/** @param download `no`: nothing is asked of the network */
export function keptFirst(host: Host, { download }: { readonly download: 'yes' | 'no' }): RepositoryClient {
  return {
    ...host.client,
    download: async (target, receive, signal) => {
      try {
        const { bundle, serial, manifest } = target.release;
        const path = archivePathOf(host.paths, bundle, releaseName(serial, manifest.digest));
        return await fromKept(path).download(target, receive, signal);
      } catch (error) {
        if (signal?.aborted || isOurDisk(error)) throw error;
        if (download === 'no') throw lost(target, error);
        host.log.warn({ err: error, target: target.path }, 'the kept archive cannot be used');
        return host.client.download(target, receive, signal);
      }
    },
  };
}

/** Staging cannot be written: no other place of the archive helps. */
function isOurDisk(error: unknown): boolean {
  return isWritError(error) && error.code.startsWith('DISK_') && error.facts['op'] !== readOp;
}

function lost({ path, release }: SignedTarget, cause: unknown): WritError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new WritError('STATE_DAMAGED', `the kept archive of ${release.bundle} cannot be used: ${why}`, {
    facts: { target: path },
    cause,
  });
}

const readOp = 'repair.kept-archive';

/** @returns a client that has this one file for every target */
export function fromKept(path: string): Pick<RepositoryClient, 'download'> {
  return {
    download: async (_, receive, signal = new AbortController().signal) => {
      await receive((start) => readKept(path, start), signal, 'no');
      return [];
    },
  };
}

async function* readKept(path: string, { offset, onBegin }: TransferStart): AsyncGenerator<Buffer> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;
  try {
    const descriptor = fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    onBegin({ offset });
    for await (const chunk of fs.createReadStream(path, { fd: descriptor, start: offset }))
      yield chunk as Buffer;
  } catch (error) {
    throw diskError(error, { op: readOp, path });
  }
}
