// What stands before the pages: the form that takes a token, and the page that says why there is nothing else to see. Never
// repeats a token that was typed.
import { type Frame, renderPage } from './layout.js';
import { Foreign } from './parts.js';

export interface SignInTry {
  /** Where it leads to: a path of this server. */
  readonly next: string;
  /** Why the last token was not taken. */
  readonly refused?: string;
}

/** @returns the page at `/sign-in` */
export function signInPage({ next, refused }: SignInTry, frame: Omit<Frame, 'visitor'>): string {
  return renderPage({
    ...frame,
    title: 'Sign in',
    children: (
      <>
        <h1>Sign in</h1>
        <form class="sign-in" method="post" action="/sign-in">
          <input type="hidden" name="next" value={next} />
          <label for="token">Token</label>
          <input
            id="token"
            name="token"
            type="password"
            autocomplete="current-password"
            required
            maxLength={200}
            aria-describedby="token-help"
          />
          <button type="submit">Sign in</button>
          {refused === undefined ? null : (
            <p class="warning" role="alert">
              <Foreign text={refused} />
            </p>
          )}
          <p id="token-help" class="quiet">
            A token for people begins with <code>writ_people_</code>. On the machine of the server{' '}
            <code>writ fleet token create --for people --store S</code> makes one.
          </p>
        </form>
      </>
    ),
  });
}

export interface Fault {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
}

/** @returns a page that asks for its own address again, from here */
export function comeAgainPage(frame: Frame): string {
  return renderPage({
    ...frame,
    title: 'One moment',
    comesAgain: true,
    children: (
      <p>
        <a href={frame.address}>Go on</a>
      </p>
    ),
  });
}

/** @returns the page that stands for one that could not be made */
export function faultPage({ status, code, message, hint }: Fault, frame: Frame): string {
  return renderPage({
    ...frame,
    title: `${status} ${code}`,
    children: (
      <>
        <h1>{status === 404 ? 'Not found' : 'Not shown'}</h1>
        <p role="alert">
          <code>{code}</code> <Foreign text={message} />
        </p>
        {hint === undefined ? null : <p class="quiet">Next: {hint}</p>}
        <p>
          <a href="/">To the first screen</a>
        </p>
      </>
    ),
  });
}
