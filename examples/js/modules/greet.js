const words = { en: "Hello", de: "Guten Tag" };

export const languages = Object.keys(words);

export default function greet(name, language = "en") {
	return `${words[language]}, ${name}!`;
}
