// The client of tuf-js on a repository of ours: a second opinion on everything that we publish. Owns its directory
// and its time; what it thinks is the test's to judge.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Updater } from 'tuf-js';

export interface TufJsClientOptions {
  /** An empty directory of its own, or the one that an earlier client left. */
  readonly directory: string;
  readonly bootstrapRoot: Uint8Array;
  /** Top of the repository, with a slash at its end. */
  readonly url: string;
  /** What the client takes for now, in epoch milliseconds. */
  readonly nowMs: number;
}

export interface TufJsClient {
  refresh(): Promise<void>;
  /** @returns the bytes of a target; undefined if nobody lists it */
  download(path: string): Promise<Buffer | undefined>;
  /** Version of a trusted role, as stored. */
  version(role: string): number;
}

/** A new client: it refreshes once. */
export function tufJsClient({ directory, bootstrapRoot, url, nowMs }: TufJsClientOptions): TufJsClient {
  const metadataDir = `${directory}/metadata`;
  const targetDir = `${directory}/targets`;
  for (const path of [metadataDir, targetDir]) mkdirSync(path, { recursive: true });
  const root = `${metadataDir}/root.json`;
  if (!existsSync(root)) writeFileSync(root, bootstrapRoot);
  const updater = new Updater({
    metadataDir,
    targetDir,
    metadataBaseUrl: `${url}metadata/`,
    targetBaseUrl: `${url}targets/`,
    config: { fetchRetry: 0, fetchTimeout: 60_000 },
  });
  // It takes the time of the machine once, when it is made; there is no other way to tell it another.
  const { trustedSet } = updater as unknown as { trustedSet: { referenceTime: Date } };
  trustedSet.referenceTime = new Date(nowMs);
  return {
    refresh: () => updater.refresh(),
    download: async (path) => {
      const info = await updater.getTargetInfo(path);
      return info === undefined ? undefined : readFileSync(await updater.downloadTarget(info));
    },
    version: (role) => JSON.parse(readFileSync(`${metadataDir}/${role}.json`, 'utf8')).signed.version,
  };
}
