// What `sallyport doctor` evaluates in the sandbox, to see that a whole run works here: it needs nothing.

export default function answer() {
  return 'works'
}
