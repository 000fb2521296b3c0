// A checkout of Writ from outside: the paths of its programs, and whether it is built. Imports nothing of it, so that every
// file of it may move.
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';

export interface Checkout {
  /** Absolute path without links. */
  readonly directory: string;
  /** The program of `writ`, from `bin` of its package.json. */
  readonly program: string;
  /** The module that a Node worker imports, from `exports` of its package.json. */
  readonly sdk: string;
  readonly demo: string;
}

/** An error of the caller: the comparison exits with 2. */
export class Misuse extends Error {}

/** @throws Misuse when the path is no checkout, or the checkout is not built */
export function openCheckout(path: string): Checkout {
  const given = resolve(path);
  if (!existsSync(join(given, 'package.json'))) throw new Misuse(`${given} is no checkout of Writ`);
  const directory = realpathSync(given);
  const { bin, exports } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as {
    readonly bin?: { readonly writ?: string };
    readonly exports?: { readonly './sdk'?: { readonly default?: string } };
  };
  const [program, sdk] = [bin?.writ, exports?.['./sdk']?.default];
  if (program === undefined || sdk === undefined) throw new Misuse(`${directory} is no checkout of Writ`);
  const checkout = {
    directory,
    program: join(directory, program),
    sdk: join(directory, sdk),
    demo: join(directory, 'dist', 'demo', 'demo.js'),
  };
  const missing = [checkout.program, checkout.sdk, checkout.demo].find((file) => !existsSync(file));
  if (missing !== undefined)
    throw new Misuse(`${directory} is not built (no ${missing}): run npm run build in it`);
  return checkout;
}
