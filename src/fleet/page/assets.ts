// The three files that the pages load. Each name has the digest of its content, so that browsers cache it for a year and never use
// the file of another version. Read once at the start of the server, from the folder of this file or of the bundled program.
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { WritError } from '../../core/errors.js';
import { readSmallFile } from '../../platform/read-file.js';
import type { AssetAddresses } from './layout.js';

export interface Asset {
  /** Path, as `/assets/page-0123456789ab.css`. */
  readonly address: string;
  readonly type: string;
  readonly bytes: Buffer;
}

export interface Assets {
  readonly addresses: AssetAddresses;
  readonly byAddress: ReadonlyMap<string, Asset>;
}

const maxAssetBytes = 100_000;

/**
 * @returns the style, script and icon of the pages, by addresses that change with their content
 * @throws INTERNAL if a file of the build is missing
 */
export function readAssets(): Assets {
  const style = readAsset(new URL('./page.css', import.meta.url), 'text/css; charset=utf-8');
  const script = readAsset(new URL('./live.js', import.meta.url), 'text/javascript; charset=utf-8');
  const icon = readAsset(new URL('./icon.svg', import.meta.url), 'image/svg+xml');
  return {
    addresses: { style: style.address, script: script.address, icon: icon.address },
    byAddress: new Map([style, script, icon].map((one) => [one.address, one])),
  };
}

function readAsset(url: URL, type: string): Asset {
  const path = fileURLToPath(url);
  const read = readSmallFile(path, { maxBytes: maxAssetBytes });
  if (read.kind !== 'read')
    throw new WritError('INTERNAL', `${path} is missing: it is part of the program`, { facts: { path } });
  const digest = createHash('sha256').update(read.bytes).digest('hex').slice(0, 12);
  const [, name = '', ending = ''] = /([\w-]+)\.(\w+)$/.exec(path) ?? [];
  return { address: `/assets/${name}-${digest}.${ending}`, type, bytes: read.bytes };
}
