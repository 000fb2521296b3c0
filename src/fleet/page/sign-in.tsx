// The pages without content of the fleet: the sign-in form, the page that reloads itself, and the error page. A typed token is
// never repeated.
import { type Frame, renderPage } from './layout.js';
import { UntrustedText } from './parts.js';

export interface SignInForm {
  /** Path on this server that a successful sign-in redirects to. */
  readonly next: string;
  /** Why the last token was refused; undefined before the first attempt. */
  readonly refused?: string;
}

/** @returns the page at `/sign-in` */
export function signInPage({ next, refused }: SignInForm, frame: Omit<Frame, 'visitor'>): string {
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
              <UntrustedText text={refused} />
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

/** @returns a page that requests its own address again, so that the browser sends the cookie */
export function reloadPage(frame: Frame): string {
  return renderPage({
    ...frame,
    title: 'One moment',
    shouldReload: true,
    children: (
      <p>
        <a href={frame.address}>Go on</a>
      </p>
    ),
  });
}

/** @returns the error page */
export function faultPage({ status, code, message, hint }: Fault, frame: Frame): string {
  return renderPage({
    ...frame,
    title: `${status} ${code}`,
    children: (
      <>
        <h1>{status === 404 ? 'Not found' : 'Not shown'}</h1>
        <p role="alert">
          <code>{code}</code> <UntrustedText text={message} />
        </p>
        {hint === undefined ? null : <p class="quiet">Next: {hint}</p>}
        <p>
          <a href="/">To the first screen</a>
        </p>
      </>
    ),
  });
}
